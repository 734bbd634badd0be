package cm_test

import (
	"net/netip"
	"sync/atomic"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// A stingyLink is a socket that hands out one transmit frame at a time, and none while it
// is stuck.
type stingyLink struct {
	*xsk.Socket
	stuck atomic.Bool
	out   int // frames handed out
}

func (l *stingyLink) Reserve(dst []xsk.TxFrame) int {
	if l.stuck.Load() || l.out > 0 || len(dst) == 0 {
		return l.Socket.Reserve(nil)
	}
	l.out = l.Socket.Reserve(dst[:1])
	return l.out
}

func (l *stingyLink) Transmit(frames []xsk.TxFrame) {
	l.out -= len(frames)
	l.Socket.Transmit(frames)
}

// newRings makes two hosts on AF_XDP sockets whose kernel is in memory, so that the race
// detector sees who touches a ring. What they ask of the machine is a simulated network's.
func newRings(t *testing.T) ([2]*host, [2]*stingyLink) {
	t.Helper()
	clock := engine.NewSystemClock()
	network, err := sim.NewNetwork(1, clock, sim.Faults{})
	must(t, err)
	var kernels [2]*xsktest.Kernel
	kernels[0], kernels[1] = xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	var hosts [2]*host
	var links [2]*stingyLink
	for i := range hosts {
		h := &host{
			mac: [6]byte{2, 0, 0, 0, 0, byte(i + 1)},
			v4:  netip.AddrFrom4([4]byte{192, 0, 2, byte(i + 1)}),
		}
		around, err := network.NewPort(sim.PortConfig{
			MAC: h.mac, MTU: 1500, Addrs: []netip.Addr{h.v4},
		})
		must(t, err)
		socket, err := xsk.Open(xsk.Config{
			Interface: "fake0", RxFrames: 256, TxFrames: 64, Kernel: kernels[i],
		})
		must(t, err)
		links[i] = &stingyLink{Socket: socket}
		h.dev, err = engine.OpenLink(links[i], around, engine.Options{Clock: clock, Spin: 1})
		must(t, err)
		t.Cleanup(func() { must(t, h.dev.Close()) })
		o := quick
		o.Linger = 1 // Close does not wait for the peer
		h.equip(t, o)
		hosts[i] = h
	}
	return hosts, links
}

// TestDialAndCloseOnRings: Close makes progress until what it posted has left, beside the
// driver of the device, which is in and out of the link. It is for the race detector.
func TestDialAndCloseOnRings(t *testing.T) {
	hosts, links := newRings(t)
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	for range 3 {
		_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
		must(t, err)
		s.conn(t)
	}
	links[0].stuck.Store(true)
	must(t, a.manager.Close())
}
