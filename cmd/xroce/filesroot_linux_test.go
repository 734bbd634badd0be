package main

import (
	"fmt"
	"math"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
)

// TestRootFewFiles: wherever a command runs out of open files, it says so and what to do.
func TestRootFewFiles(t *testing.T) {
	t.Parallel() // it waits most of the time
	// What who runs the tests has left open would count.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		t.Fatal(err)
	}
	p, _ := pair(t, vethpair.Options{MTU: 1500})
	peer := p.B.IPv4.Addr().String()
	for args, ended := range map[string]string{
		"pktgen -d xr0 -n 3 --to " + peer: "3 frames",
		"pingpong -d xr0 -p 1 " + peer:    "connection refused",
		"tcpdump -i xr0 -w /none/f":       "no such file",
		"devinfo -d xr0":                  "hca_id:",
		"devices":                         "xr0",
		"check xr0":                       "xr0 can work",
	} {
		lacked := 0
		// With fewer the runtime of Go does not begin.
		for n := 8; n < 30; n += 2 {
			cmd := child(t, 0, strings.Fields(args)...)
			limited := exec.Command("prlimit", append([]string{fmt.Sprintf("--nofile=%d", n)},
				cmd.Args...)...)
			limited.Env = cmd.Env
			var out []byte
			err := p.Do(vethpair.A, func() error {
				out, _ = limited.CombinedOutput()
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			few := strings.Contains(string(out), "too many open files") &&
				strings.Contains(string(out), "raise the limit (ulimit -n)")
			if few {
				lacked++
			} else if !strings.Contains(string(out), ended) {
				t.Errorf("%s of %d files: %s", args, n, out)
			}
		}
		if lacked == 11 || lacked == 0 && strings.HasPrefix(args, "p") {
			t.Errorf("%s: %d times too few", args, lacked)
		}
	}
}
