package engine_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/engine"
	"xroce/roce/wire"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest/timeout"
)

// TestAddressWithoutRoute looks for addresses that no route leads to: the kernel would ask
// for them on the link by ARP, and remember each. It looks without asking for one on the
// link, too.
func TestAddressWithoutRoute(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	entries := func() (n int) {
		in(t, pair, vethpair.A, func(link netlink.Link) error {
			list, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
			n = len(list)
			return err
		})
		return n
	}
	before := entries()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(time.Minute))
	defer cancel()
	for _, far := range []string{"203.0.113.9", "198.51.100.1", "8.8.8.8"} {
		av := engine.AddressVector{
			DGID: wire.GIDFromAddr(netip.MustParseAddr(far)), SGIDIndex: gidIPv4, HopLimit: 64,
		}
		if _, err := devs[0].ResolvePath(ctx, av); !errors.Is(err, engine.ErrNoRoute) {
			t.Errorf("%s: %v", far, err)
		}
		if _, err := devs[0].KnownPath(av); !errors.Is(err, engine.ErrNoRoute) {
			t.Errorf("%s: %v", far, err)
		}
	}
	near := pair.B.IPv4.Addr().Next()
	av := engine.AddressVector{DGID: wire.GIDFromAddr(near), SGIDIndex: gidIPv4, HopLimit: 64}
	if _, err := devs[0].KnownPath(av); !errors.Is(err, engine.ErrNoNeighbour) {
		t.Errorf("%s: %v", near, err)
	}
	if devs[0].HasNeighbour(wire.GIDFromAddr(near), 0) {
		t.Errorf("%s is a neighbour", near)
	}
	if n := entries(); n != before {
		t.Errorf("%d entries of the neighbour table, there were %d", n, before)
	}
	peer := pair.B.IPv4.Addr()
	av.DGID = wire.GIDFromAddr(peer)
	want, err := devs[0].ResolvePath(ctx, av)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := devs[0].KnownPath(av); got != want || err != nil {
		t.Errorf("%+v (%v), want %+v", got, err, want)
	}
	if !devs[0].HasNeighbour(av.DGID, 0) {
		t.Errorf("%s is no neighbour", peer)
	}
	via, err := devs[0].PathVia(av, [6]byte{2, 9})
	if want.DstMAC = [6]byte{2, 9}; via != want || err != nil {
		t.Errorf("%+v (%v), want %+v", via, err, want)
	}
}
