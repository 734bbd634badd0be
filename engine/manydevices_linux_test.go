//go:build !race

// The race detector has memory of its own, which is not what is counted here.

package engine_test

import (
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"

	"xroce/engine"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestManyDevices opens 32 devices at once that may have 8 MiB each, and counts what memory the
// process has more then: all that a device takes is within that.
func TestManyDevices(t *testing.T) {
	xsktest.NeedRoot(t)
	const devices, each = 32, 8 << 20
	var pairs []*vethpair.Pair
	for range devices / 2 {
		pair, err := vethpair.New(vethpair.Options{NoAddrs: true})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := pair.Close(); err != nil {
				t.Error(err)
			}
		})
		pairs = append(pairs, pair)
	}
	debug.FreeOSMemory()
	before := resident(t)
	for _, pair := range pairs {
		for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
			var dev *engine.Device
			err := pair.Do(side, func() (err error) {
				dev, err = engine.Open(vethpair.IfName, engine.Options{Memory: each})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := dev.Close(); err != nil {
					t.Error(err)
				}
			})
			if why := dev.Link().Limited; why != "" {
				t.Errorf("there is less than was asked for: %s", why)
			}
		}
	}
	debug.FreeOSMemory()
	more := resident(t) - before
	t.Logf("%d devices take %d KiB, %d each", devices, more>>10, more/devices>>10)
	if more < devices*each/4 || more > devices*each {
		t.Errorf("%d devices of %d KiB take %d KiB", devices, each>>10, more>>10)
	}
}

// resident is how many bytes of memory this process has.
func resident(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmRSS:")
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatalf("no VmRSS in %s", text)
	}
	kib, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib << 10
}
