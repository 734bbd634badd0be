package msg_test

import (
	"net/netip"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"xroce/engine"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/xsk/xsktest"
)

// What an idle peer costs at most, as docs/messages.md says.
const (
	peerRegistered = 112 << 10
	peerHeap       = 80 << 10
)

// TestThousandPeers: what each of a thousand idle peers costs at one end, all in all: registered
// memory, and what Go has for it.
func TestThousandPeers(t *testing.T) {
	if xsktest.RaceDetector {
		t.Skip("the race detector needs memory of its own")
	}
	const peers = 1000
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	host := newStrangerHost(t, network, 1)
	a, err := msg.Open(host.dev, host.manager, msg.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, a.Close()) })
	b, addr := newNode(t, network, 2, msg.Options{})
	l, err := b.Listen(netip.AddrPortFrom(addr, 7471))
	must(t, err)
	defer l.Close()
	heap := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc + m.StackInuse)
	}
	registered := func() (n int) {
		for _, mr := range host.dev.Resources(10 * peers).MRs {
			n += int(mr.Len)
		}
		return n
	}
	heapBefore, registeredBefore := heap(), registered()
	var g errgroup.Group
	ctx := within(t)
	g.Go(func() error {
		for range peers {
			if _, err := l.Accept(ctx); err != nil {
				return err
			}
		}
		return nil
	})
	for range peers {
		_, err := a.Dial(ctx, netip.AddrPortFrom(addr, 7471))
		must(t, err)
	}
	must(t, g.Wait())
	for u := a.Usage(); u.Memory < 2*u.Slots; u = a.Usage() {
		must(t, ctx.Err())
		time.Sleep(time.Millisecond) // until the copies are there, too
	}
	onHeap := (heap() - heapBefore) / peers / 2 // both ends are here
	inRegions := (registered() - registeredBefore) / peers
	t.Logf("a peer costs %d registered bytes and %d of Go", inRegions, onHeap)
	if inRegions > peerRegistered || onHeap > peerHeap {
		t.Errorf("at most %d and %d", peerRegistered, peerHeap)
	}
}
