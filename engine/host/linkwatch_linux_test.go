package host

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
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

// A watched is the watch of an end of a pair, with what it was made of.
type watched struct {
	*netWatch
	pair *vethpair.Pair
	own  netlink.Link
	t    *testing.T
}

// watch follows one end of a new pair.
func watch(t *testing.T) *watched {
	t.Helper()
	return watchAs(t, func(*netWatch) {})
}

// watchAs is watch by what change makes of a watch.
func watchAs(t *testing.T, change func(*netWatch)) *watched {
	t.Helper()
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
	w := &watched{pair: pair, t: t}
	w.do(func() (err error) {
		if w.own, err = netlink.LinkByName(vethpair.IfName); err != nil {
			return err
		}
		w.netWatch, err = newNetWatch(w.own.Attrs().Index)
		return err
	})
	change(w.netWatch)
	w.running.Go(w.run)
	t.Cleanup(w.close)
	go func() {
		for range w.states {
		}
	}()
	return w
}

// do does something where the port is.
func (w *watched) do(f func() error) {
	w.t.Helper()
	if err := w.pair.Do(vethpair.B, f); err != nil {
		w.t.Fatal(err)
	}
}

// await waits for changes until the port is as it should be.
func (w *watched) await(what string, good func(Port) bool) {
	w.t.Helper()
	late := time.After(timeout.Scaled(10 * time.Second))
	for !good(w.port()) {
		select {
		case <-w.changes:
		case <-late:
			w.t.Fatalf("%s: the port is %+v", what, w.port())
		}
	}
}

// settle changes the port and waits for that: what came before it is known then.
func (w *watched) settle(mtu int) {
	w.t.Helper()
	w.do(func() error { return netlink.LinkSetMTU(w.own, mtu) })
	w.await("MTU", func(p Port) bool { return p.MTU == mtu })
}

// TestWatchLooksAgain: what cannot be read is read again, though nothing more happens.
func TestWatchLooksAgain(t *testing.T) {
	addrs, read := 0, 0 // calls by the goroutine of the watch
	w := watchAs(t, func(w *netWatch) {
		w.addrs = func(h *netlink.Handle, link netlink.Link) ([]netip.Addr, error) {
			addrs++
			return nil, unix.EIO
		}
		w.read = func(h *netlink.Handle, index int) (Port, error) {
			if read++; read < 3 {
				return Port{}, unix.EIO
			}
			return readPort(h, index)
		}
	})
	w.do(func() error { return netlink.AddrAdd(w.own, testAddr(10, 4, 0, 1)) })
	want := netip.AddrFrom4([4]byte{10, 4, 0, 1})
	w.await("the address", func(p Port) bool { return slices.Contains(p.Addrs, want) })
	w.close()
	if addrs == 0 || read < 3 {
		t.Errorf("addresses were read %d times, everything %d times", addrs, read)
	}
}

// TestWatchCatchesUp: the kernel has so much to say of others that notifications are lost, and an
// address comes while everything is read for that.
func TestWatchCatchesUp(t *testing.T) {
	var once, first sync.Once
	flood, flooded := make(chan struct{}), make(chan struct{})
	reading, added := make(chan struct{}), make(chan struct{})
	w := watchAs(t, func(w *netWatch) {
		w.addrs = func(h *netlink.Handle, link netlink.Link) ([]netip.Addr, error) {
			once.Do(func() {
				close(flood)
				wait(t, flooded)
			})
			return readAddrs(h, link)
		}
		w.read = func(h *netlink.Handle, index int) (Port, error) {
			port, err := readPort(h, index)
			first.Do(func() {
				close(reading)
				wait(t, added)
			})
			return port, err
		}
	})
	add := func(n byte) error { return netlink.AddrAdd(w.own, testAddr(10, 4, 0, n)) }
	other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "other"}, PeerName: "end"}
	w.do(func() error { return errors.Join(netlink.LinkAdd(other), add(1)) })
	w.reached(flood)
	w.do(func() (err error) {
		for n := 0; n < 2000 && err == nil; n++ { // more than the socket holds
			err = netlink.LinkSetMTU(other, 1000+n%2)
		}
		return err
	})
	close(flooded)
	w.reached(reading)
	w.do(func() error { return add(2) })
	close(added)
	want := netip.AddrFrom4([4]byte{10, 4, 0, 2})
	w.await("the address", func(p Port) bool { return slices.Contains(p.Addrs, want) })
}

// wait is for the goroutine of the watch, which a test that fails leaves.
func wait(t *testing.T, there <-chan struct{}) {
	select {
	case <-there:
	case <-t.Context().Done():
	}
}

// reached waits for the goroutine of the watch.
func (w *watched) reached(there <-chan struct{}) {
	w.t.Helper()
	select {
	case <-there:
	case <-time.After(timeout.Scaled(10 * time.Second)):
		w.t.Fatal("the watch never comes there")
	}
}

// TestWatchLeavesOthersAlone has other interfaces come, change and go: nothing is read
// for them, nor for what a message about the port or a VLAN says by itself.
func TestWatchLeavesOthersAlone(t *testing.T) {
	w := watch(t)
	w.settle(1400) // what vethpair did last may still have been on its way
	reads := 0
	// The goroutine of the watch is the only one to call it, and settle waits for that.
	read := w.read
	w.read = func(h *netlink.Handle, index int) (Port, error) {
		reads++
		return read(h, index)
	}
	for i := range 20 {
		w.do(func() error {
			other := &netlink.Veth{
				LinkAttrs: netlink.LinkAttrs{Name: fmt.Sprint("other", i)},
				PeerName:  fmt.Sprint("end", i),
			}
			if err := netlink.LinkAdd(other); err != nil {
				return err
			}
			if err := netlink.LinkSetUp(other); err != nil {
				return err
			}
			return netlink.LinkDel(other)
		})
		// Were many messages to wait for a watch that is not scheduled, the kernel would lose some
		// and say so, and all be read.
		w.settle(1401 + i)
	}
	w.do(func() error { return netlink.LinkSetDown(w.own) })
	w.await("down", func(p Port) bool { return !p.Up })
	w.do(func() error { return netlink.LinkSetUp(w.own) })
	w.await("up", func(p Port) bool { return p.Up })
	w.close()
	if reads != 0 {
		t.Errorf("all interfaces were read %d times", reads)
	}
}

// TestWatchRemoved deletes the port, and moves it to another namespace.
func TestWatchRemoved(t *testing.T) {
	for name, remove := range map[string]func(*watched) error{
		"deleted": func(w *watched) error { return netlink.LinkDel(w.own) },
		"moved": func(w *watched) error {
			// The other namespace has an interface of the same name.
			err := errors.Join(netlink.LinkSetDown(w.own), netlink.LinkSetName(w.own, "moved"))
			if err != nil {
				return err
			}
			ns, err := os.Open("/run/netns/" + w.pair.A.Namespace)
			if err != nil {
				return err
			}
			defer ns.Close()
			return netlink.LinkSetNsFd(w.own, int(ns.Fd()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch(t)
			w.do(func() error { return remove(w) })
			select {
			case <-w.removed:
			case <-time.After(timeout.Scaled(10 * time.Second)):
				t.Error("the watch does not notice")
			}
		})
	}
}

// TestWatchLeavesBridge takes the port out of a bridge, which the bridge tells as if the
// port were deleted.
func TestWatchLeavesBridge(t *testing.T) {
	w := watch(t)
	w.do(func() error {
		bridge := &netlink.Bridge{LinkAttrs: netlink.LinkAttrs{Name: "bridge"}}
		if err := netlink.LinkAdd(bridge); err != nil {
			return err
		}
		if err := netlink.LinkSetMaster(w.own, bridge); err != nil {
			return err
		}
		return netlink.LinkSetNoMaster(w.own)
	})
	w.settle(1300)
	select {
	case <-w.removed:
		t.Error("a port that left a bridge is taken for removed")
	default:
	}
}
