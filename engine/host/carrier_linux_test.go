package host

import (
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
)

// TestHasCarrier: an end of a wire has no carrier as soon as the other one is down, before the
// kernel tells anybody.
func TestHasCarrier(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	link := func(end vethpair.Side, f func(netlink.Link) error) {
		t.Helper()
		err := pair.Do(end, func() error {
			l, err := netlink.LinkByName(vethpair.IfName)
			if err != nil {
				return err
			}
			return f(l)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	look := func() (has bool) {
		link(vethpair.B, func(l netlink.Link) (err error) {
			has, err = HasCarrier(l.Attrs().Index)
			return err
		})
		return has
	}
	for !look() {
		// vethpair has brought up both ends; the kernel tells that by itself.
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	link(vethpair.A, func(l netlink.Link) error { return netlink.LinkSetDown(l) })
	if look() {
		t.Error("it has a carrier, and the other end is down")
	}
	if _, err := HasCarrier(1 << 30); err == nil {
		t.Error("an interface that is not there was looked at")
	}
}
