package leaktest

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"xroce/xsk/xsktest/timeout"
)

// child in the environment has the test binary be tests that pass and leave a goroutine, for good
// or until it is late.
const child = "XROCE_LEAK_TEST"

func TestMain(m *testing.M) {
	switch os.Getenv(child) {
	case "":
		Main(m)
	case "late":
		Main(leaving(time.After(900 * time.Millisecond)))
	case "left":
		goleak.VerifyTestMain(settling{leaving(nil), 0})
	}
}

// leaving are tests that leave a goroutine until the channel has something.
type leaving <-chan time.Time

func (l leaving) Run() int {
	go linger(l)
	return 0
}

// linger returns when it is told to.
func linger[T any](end <-chan T) { <-end }

// TestLate: a goroutine that ends only after goleak has given it up is none that is left.
func TestLate(t *testing.T) {
	running := Running()
	end := make(chan struct{})
	go linger(end)
	found := make(chan error)
	go func() { found <- left(timeout.Scaled(time.Minute), running, own) }()
	for range 2 { // in less than that left has looked once
		if err := goleak.Find(running, own); err == nil {
			t.Error("one that runs is not found")
		}
	}
	close(end)
	if err := <-found; err != nil {
		t.Error(err)
	}
	None(t, running)
}

// own excuses the goroutine of left in a test.
var own = goleak.IgnoreAnyFunction("xroce/xsk/xsktest/leaktest.left")

// TestLeft: a goroutine that does not end is told of, with what it does.
func TestLeft(t *testing.T) {
	running := Running()
	end := make(chan struct{})
	go linger(end)
	if err := left(0, running); err == nil || !strings.Contains(err.Error(), "leaktest.linger") {
		t.Errorf("found: %v", err)
	}
	close(end)
	None(t, running)
}

// TestOfPackages: a package whose tests leave a goroutine fails, and says which one it is, unless
// that was only late.
func TestOfPackages(t *testing.T) {
	for does, fails := range map[string]bool{"late": false, "left": true} {
		t.Run(does, func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), child+"="+does)
			out, err := cmd.CombinedOutput()
			if (err != nil) != fails || strings.Contains(string(out), "leaktest.linger") != fails {
				t.Errorf("%v, %s", err, out)
			}
		})
	}
}
