package cm_test

import (
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/xsk"
)

// A countedLink counts how often somebody looks for frames, and sleeps.
type countedLink struct {
	*sim.Port
	looks, waits atomic.Int64
	used         chan struct{} // has something when it was; room for one
}

// use notes that somebody looks or waits.
func (l *countedLink) use() {
	select {
	case l.used <- struct{}{}:
	default:
	}
}

func (l *countedLink) Receive(dst []xsk.RxFrame) int {
	l.looks.Add(1)
	l.use()
	return l.Port.Receive(dst)
}

func (l *countedLink) Wait(timeout time.Duration) error {
	l.waits.Add(1)
	l.use()
	return l.Port.Wait(timeout)
}

// newDirectHost makes a device in direct mode with a manager, and a CQ for its QPs.
func newDirectHost(t *testing.T, network *sim.Network, i byte) (*host, *countedLink) {
	t.Helper()
	h := &host{v4: netip.AddrFrom4([4]byte{192, 0, 2, i})}
	port, err := network.NewPort(sim.PortConfig{
		MAC: [6]byte{2, 0, 0, 0, 0, i}, MTU: 1500, Addrs: []netip.Addr{h.v4},
	})
	must(t, err)
	link := &countedLink{Port: port, used: make(chan struct{}, 1)}
	h.dev, err = engine.OpenLink(link, port, engine.Options{Direct: true})
	must(t, err)
	t.Cleanup(func() { must(t, h.dev.Close()) })
	h.pd = h.dev.AllocPD()
	h.cq, err = h.dev.CreateCQ(64)
	must(t, err)
	h.manager, err = cm.Open(h.dev, quick)
	must(t, err)
	t.Cleanup(func() { must(t, h.manager.Close()) })
	return h, link
}

// atRest tests that a device comes to do nothing when nothing is to be done. A timer that
// was armed before may still expire, on a busy machine late, but then the device is left
// alone for as long as this looks: whoever polled would not be.
func (l *countedLink) atRest(t *testing.T) {
	t.Helper()
	const long = 350 * time.Millisecond
	rest, late := time.NewTimer(long), time.NewTimer(testTimeout)
	defer rest.Stop()
	defer late.Stop()
	looks, waits := l.looks.Load(), l.waits.Load()
	for {
		select {
		case <-l.used:
			rest.Reset(long)
		case <-rest.C:
			return
		case <-late.C:
			t.Fatalf("%d looks at the link and %d waits in %s", l.looks.Load()-looks,
				l.waits.Load()-waits, testTimeout)
		}
	}
}

// TestDirectWithoutPolling connects devices in direct mode though nobody polls either, and
// hangs up; in between, with the connection and with a listener that waits, nothing wakes
// up.
func TestDirectWithoutPolling(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	must(t, err)
	a, linkA := newDirectHost(t, network, 1)
	b, linkB := newDirectHost(t, network, 2)
	to := netip.AddrPortFrom(b.v4, 1)
	setup := func(h *host) cm.Setup {
		return cm.Setup{PD: h.pd, Init: engine.QPInit{SendCQ: h.cq, RecvCQ: h.cq}}
	}
	l, err := b.manager.Listen(to)
	must(t, err)
	accepted := make(chan *cm.Conn)
	go func() {
		r, err := l.Accept(within(t, testTimeout))
		if err != nil {
			t.Error(err)
			close(accepted)
			return
		}
		c, err := r.Accept(within(t, testTimeout), setup(b))
		if err != nil {
			t.Error(err)
		}
		accepted <- c
	}()
	linkA.atRest(t)
	linkB.atRest(t)
	c, err := a.manager.Dial(within(t, testTimeout), to, setup(a))
	must(t, err)
	d := <-accepted
	if d == nil {
		t.FailNow()
	}
	linkA.atRest(t)
	linkB.atRest(t)
	c.Close()
	over(t, d.Done())
	over(t, c.Released())
	d.Close()
	over(t, d.Released())
	a.forgotten(t)
	b.forgotten(t)
	linkA.atRest(t)
	linkB.atRest(t)
}
