package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/cmd/xroce/internal/peer"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// In the environment childUser makes the test binary the program itself, as the user of
// that number, and childRuntime is the directory of its control socket.
const (
	childUser    = "XROCE_TEST_CHILD_USER"
	childRuntime = "XROCE_TEST_CHILD_RUNTIME"
	// childPatience is how long it may go on with what it has, when it is to end.
	childPatience = "XROCE_TEST_CHILD_PATIENCE"
)

func TestMain(m *testing.M) {
	user := os.Getenv(childUser)
	if user == "" {
		os.Exit(m.Run())
	}
	if user != "0" {
		var uid int
		if _, err := fmt.Sscan(user, &uid); err != nil {
			panic(err)
		}
		if err := unix.Setuid(uid); err != nil {
			panic(err)
		}
	}
	a := newApp(os.Stdout, os.Stderr)
	a.runtime = os.Getenv(childRuntime)
	a.dumpPatience, _ = time.ParseDuration(os.Getenv(childPatience))
	os.Exit(execute(unhurried(context.Background()), a, os.Args[1:]))
}

// unhurried is a context of commands whose peers have more time to connect and to get ready where
// the machine is busy: those of a test share it with all others.
func unhurried(ctx context.Context) context.Context {
	return peer.Stretch(ctx, timeout.Multiplier())
}

// child prepares a child process that is the program itself.
func child(t *testing.T, user int, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", childUser, user),
		childRuntime+"="+filepath.Join(t.TempDir(), "xroce"))
	return cmd
}

// pair makes two namespaces and a bench whose commands run in one of them.
func pair(t *testing.T, o vethpair.Options) (p *vethpair.Pair, in func(vethpair.Side) bench) {
	t.Helper()
	xsktest.NeedRoot(t)
	p, err := vethpair.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p, func(s vethpair.Side) bench {
		return bench{
			machine: newApp(nil, nil).machine,
			around: func(f func()) {
				if err := p.Do(s, func() error { f(); return nil }); err != nil {
					panic(err)
				}
			},
		}
	}
}
