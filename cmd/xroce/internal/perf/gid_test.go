package perf

import (
	"errors"
	"net/netip"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// TestBestGID: a GID that is chosen is one that there is, and with --ipv6 of IPv6.
func TestBestGID(t *testing.T) {
	const link, v4, v6, none = "fe80::1", "192.0.2.1", "2001:db8::1", ""
	for _, tt := range []struct {
		table []string
		ipv6  bool
		want  int
	}{
		{[]string{link, v4, v6}, false, 1},
		{[]string{link, v4, v6}, true, 2},
		{[]string{link, v6}, false, 1},
		{[]string{link, v4}, true, 0},
		{[]string{v4}, true, -1},
		{[]string{link}, false, 0},
		{[]string{link, none, v6}, true, 2},
		{[]string{link, none, v4}, false, 2},
		{[]string{link, none}, false, 0},
		{[]string{link, none}, true, 0},
		{[]string{none, none}, false, -1},
		{nil, false, -1},
	} {
		var table []wire.GID
		for _, text := range tt.table {
			var g wire.GID
			if text != none {
				g = wire.GIDFromAddr(netip.MustParseAddr(text))
			}
			table = append(table, g)
		}
		if got := bestGID(table, tt.ipv6); got != tt.want {
			t.Errorf("%q, IPv6 %t: %d, want %d", tt.table, tt.ipv6, got, tt.want)
		}
	}
}

// TestChooseGID: an index that is asked for is that of a GID.
func TestChooseGID(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1, engine.Options{})
	for index, want := range map[int]int{AutoGID: 1, 0: 0, 1: 1, 2: -1, -2: -1} {
		got, err := chooseGID(dev, &Config{GIDIndex: index})
		refused := errors.Is(err, roce.ErrInvalid)
		if want < 0 && !refused || want >= 0 && (got != want || err != nil) {
			t.Errorf("-x %d: %d, %v", index, got, err)
		}
	}
}

// TestGIDGone: an address that is removed while the test is prepared ends it with an error.
func TestGIDGone(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1, engine.Options{})
	c := brief(Test{Verb: Send})
	const gone = 2 // of a table of two
	_, err = newEnd(dev, &c, ownSystem, wire.MTU1024, gone, nil)
	if !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("%v", err)
	}
}
