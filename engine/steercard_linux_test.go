package engine_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/nic"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestVethSteerRefused: a veth pair has no flow rules. That is an error which says what to do,
// and leaves the interface as it was: no program, no socket, no record.
func TestVethSteerRefused(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	records := func() (list []string) { // of this namespace: others may open cards, too
		err := pair.Do(vethpair.A, func() error {
			var ns unix.Stat_t
			if err := unix.Stat("/proc/thread-self/ns/net", &ns); err != nil {
				return err
			}
			var err error
			list, err = filepath.Glob(fmt.Sprintf("/run/xroce/steer-%d-*.json", ns.Ino))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	before := records()
	var dev *engine.Device
	err = pair.Do(vethpair.A, func() (err error) {
		dev, err = engine.Open(pair.A.Name, engine.Options{Steer: true})
		return err
	})
	if !errors.Is(err, nic.ErrSteer) || !errors.Is(err, errors.ErrUnsupported) || dev != nil ||
		!strings.Contains(err.Error(), "ethtool -L xr0 combined 1") {
		t.Errorf("%v, %v", dev, err)
	}
	if after := records(); len(after) > len(before) {
		t.Errorf("records %q, before %q", after, before)
	}
	err = pair.Do(vethpair.A, func() (err error) {
		dev, err = engine.Open(pair.A.Name, engine.Options{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
}
