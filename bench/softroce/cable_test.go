package softroce

import (
	"bytes"
	"os"
	"sync"
	"testing"
)

// laid makes a cable and returns what is plugged into its two ends.
func laid(t *testing.T) (c *Cable, plugs [2]*os.File) {
	t.Helper()
	var ends [2]*os.File
	for i := range ends {
		var err error
		if ends[i], plugs[i], err = framePair(); err != nil {
			t.Fatal(err)
		}
	}
	c = NewCable(ends[A], ends[B])
	t.Cleanup(func() {
		for range 2 { // it is idempotent
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		plugs[A].Close()
		plugs[B].Close()
	})
	return c, plugs
}

func send(t *testing.T, f *os.File, frame []byte) {
	t.Helper()
	if _, err := f.Write(frame); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, f *os.File) []byte {
	t.Helper()
	buf := make([]byte, maxFrame)
	n, err := f.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	return buf[:n]
}

func TestCableForwardsWholeFrames(t *testing.T) {
	_, plugs := laid(t)
	for _, n := range []int{1, 60, 1514, 4214, 60000} {
		frame := bytes.Repeat([]byte{byte(n)}, n)
		for _, from := range []End{A, B} {
			send(t, plugs[from], frame)
			if got := receive(t, plugs[B-from]); !bytes.Equal(got, frame) {
				t.Errorf("%d bytes from %d came as %d", n, from, len(got))
			}
		}
	}
}

func TestCableWatcherLosesFrames(t *testing.T) {
	c, plugs := laid(t)
	var seen []byte
	var mu sync.Mutex
	c.Watch(func(from End, frame []byte, lost bool) bool {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, frame[0])
		return frame[0]%2 == 0
	})
	for i := range byte(6) {
		send(t, plugs[A], []byte{i})
	}
	for _, want := range []byte{1, 3, 5} {
		if got := receive(t, plugs[B]); got[0] != want {
			t.Errorf("frame %d, not %d", got[0], want)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if !bytes.Equal(seen, []byte{0, 1, 2, 3, 4, 5}) || c.Lost() != 3 {
		t.Errorf("saw %v, lost %d", seen, c.Lost())
	}
}

func TestCableLosesAtTheRateOfItsSeed(t *testing.T) {
	c, _ := laid(t)
	run := func(ppm int, seed uint64) (pattern string) {
		c.Lose(ppm, seed)
		for range 2000 {
			if c.pass(A, []byte{0}) {
				pattern += "x"
			} else {
				pattern += "."
			}
		}
		return pattern
	}
	first := run(100_000, 7)
	if n := bytes.Count([]byte(first), []byte("x")); n < 150 || n > 250 {
		t.Errorf("lost %d of 2000 at a tenth", n)
	}
	if run(100_000, 7) != first {
		t.Error("a seed does not repeat")
	}
	if run(100_000, 8) == first {
		t.Error("two seeds lose the same")
	}
	if bytes.Contains([]byte(run(0, 7)), []byte("x")) {
		t.Error("lost at a rate of 0")
	}
	if bytes.Contains([]byte(run(1_000_000, 7)), []byte(".")) {
		t.Error("kept at a rate of 1")
	}
}
