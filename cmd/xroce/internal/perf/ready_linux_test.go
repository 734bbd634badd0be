package perf

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// withoutMincore says that this process is the one that may not ask for pages.
const withoutMincore = "XROCE_TEST_WITHOUT_MINCORE"

// TestReadyWithoutPaging: where the kernel does not tell which pages are present, --odp is refused
// before the peer is met, and other memory is not.
func TestReadyWithoutPaging(t *testing.T) {
	if os.Getenv(withoutMincore) == "" {
		ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
		defer cancel()
		c := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestReadyWithoutPaging$", "-test.v")
		c.Env = append(os.Environ(), withoutMincore+"=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	xsktest.Forbid(t, unix.SYS_MINCORE)
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{})
	o := Options{Config: brief(Test{Verb: Write})}
	must(t, o.Ready(dev))
	o.Release()
	o.ODP = true
	err = o.Ready(dev)
	if !errors.Is(err, errors.ErrUnsupported) || !strings.HasPrefix(err.Error(), "--odp: ") {
		t.Errorf("%v", err)
	}
	if left := dev.Resources(1).Total; left != (engine.ResourceCount{}) {
		t.Errorf("left: %+v", left)
	}
}
