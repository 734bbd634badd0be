package host

import (
	"net"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// testAddr is an address in use at once.
func testAddr(ip ...byte) *netlink.Addr {
	return &netlink.Addr{
		IPNet: &net.IPNet{IP: ip, Mask: net.CIDRMask(32, 32)}, Flags: unix.IFA_F_NODAD,
	}
}

// crowded makes an interface beside that of an end, with more addresses than the kernel
// tells in one go.
func crowded(t *testing.T, pair *vethpair.Pair) (other netlink.Link) {
	t.Helper()
	err := pair.Do(vethpair.B, func() (err error) {
		both := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other"}, PeerName: "end"}
		if err := netlink.LinkAdd(both); err != nil {
			return err
		}
		if other, err = netlink.LinkByName("other"); err != nil {
			return err
		}
		for i := range 1000 {
			if err := netlink.AddrAdd(other, testAddr(10, 1, byte(i>>8), byte(i))); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return other
}

// toggle gives an interface an address and takes it away, over and over, until stop
// closes.
func toggle(pair *vethpair.Pair, link netlink.Link, stop <-chan struct{}) error {
	return pair.Do(vethpair.B, func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			if err := netlink.AddrAdd(link, testAddr(10, 2, 0, 1)); err != nil {
				return err
			}
			if err := netlink.AddrDel(link, testAddr(10, 2, 0, 1)); err != nil {
				return err
			}
		}
	})
}

// TestWatchUndisturbed changes the address of a port while those of another interface
// come and go, under which the kernel calls its dumps interrupted: the watch knows the
// truth when that is over.
func TestWatchUndisturbed(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := pair.Close(); err != nil {
			t.Error(err)
		}
	})
	other := crowded(t, pair)
	var own netlink.Link
	var w *netWatch
	err = pair.Do(vethpair.B, func() (err error) {
		if own, err = netlink.LinkByName(vethpair.IfName); err != nil {
			return err
		}
		w, err = watchNet(own.Attrs().Index)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	go func() {
		for range w.states {
		}
	}()
	for round := range byte(20) {
		stop := make(chan struct{})
		var running sync.WaitGroup
		running.Go(func() {
			if err := toggle(pair, other, stop); err != nil {
				t.Error(err)
			}
		})
		err := pair.Do(vethpair.B, func() error {
			return netlink.AddrAdd(own, testAddr(10, 3, 0, round))
		})
		close(stop)
		running.Wait()
		if err != nil {
			t.Fatal(err)
		}
		want := netip.AddrFrom4([4]byte{10, 3, 0, round})
		for deadline := time.Now().Add(timeout.Scaled(10 * time.Second)); ; {
			if slices.Contains(w.port().Addrs, want) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("round %d: %s is not among %s", round, want, w.port().Addrs)
			}
			time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
		}
	}
}
