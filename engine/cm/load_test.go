package cm_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	rcm "xroce/roce/cm"
	"xroce/xsk/xsktest"
)

// many dials so often at once and returns the connections and what else came.
func (h *host) many(
	ctx context.Context, to netip.AddrPort, n int,
) (conns []*cm.Conn, errs []error) {
	var mu sync.Mutex
	var running sync.WaitGroup
	for range n {
		running.Go(func() {
			c, err := h.manager.Dial(ctx, to, h.setup())
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
			} else {
				conns = append(conns, c)
			}
		})
	}
	running.Wait()
	return conns, errs
}

// TestManyAtOnce makes 200 connections at once, half of them each way.
func TestManyAtOnce(t *testing.T) {
	_, hosts := newWorld(t, cm.Options{}, engine.Options{})
	var ends [2][]*cm.Conn
	var running sync.WaitGroup
	for i, h := range hosts {
		to := netip.AddrPortFrom(hosts[1-i].v4, 1)
		hosts[1-i].serve(t, to)
		running.Go(func() {
			conns, errs := h.many(within(t, testTimeout), to, 100)
			for _, err := range errs {
				t.Error(err)
			}
			ends[i] = conns
		})
	}
	running.Wait()
	qpns := map[uint32]bool{}
	for _, conns := range ends {
		for _, c := range conns {
			qpns[c.QP().Query().DestQPN] = true
		}
	}
	if len(qpns) != 200 {
		t.Errorf("%d queue pairs are connected to, want 200", len(qpns))
	}
	for _, h := range hosts {
		if lost := h.manager.Lost(); lost != (cm.Lost{}) {
			t.Errorf("lost %+v", lost)
		}
	}
}

// TestLoss connects through a wire that loses 30 % each way, in bursts, and repeats
// and reorders: all get through or end cleanly, and nothing is left.
func TestLoss(t *testing.T) {
	network, hosts := newWorld(t, quick, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	must(t, network.SetFaults(sim.Faults{
		Drop: 0.2, Burst: sim.Burst{Enter: 0.1, Leave: 0.33, Drop: 0.7}, Dup: 0.1,
		Reorder: 0.1, ReorderBy: 20_000_000,
	}))
	n := 50
	if testing.Short() {
		n = 10
	}
	conns, errs := a.many(within(t, testTimeout), to, n)
	for _, err := range errs {
		var refused *cm.RejectedError
		if !errors.Is(err, cm.ErrTimeout) && !errors.As(err, &refused) {
			t.Error(err)
		}
	}
	if len(conns) < n*8/10 {
		t.Errorf("%d of %d connections came about", len(conns), n)
	}
	for i, c := range conns {
		if i%2 == 0 {
			c.Close()
		}
	}
	must(t, network.SetFaults(sim.Faults{}))
	for _, c := range conns {
		c.Close()
		over(t, c.Released())
	}
	s.Close()
	a.forgotten(t)
	for len(s.conns) > 0 {
		c := <-s.conns
		c.Close()
		over(t, c.Released())
	}
	b.forgotten(t)
}

// TestFlood sends many more requests than anybody accepts. When the peers go away so
// do their requests, but for those whose REJ is lost: the listener refuses them.
func TestFlood(t *testing.T) {
	_, hosts := newWorld(t, cm.Options{}, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	l, err := b.manager.Listen(to)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { a.many(ctx, to, 400) })
	dropped := func() uint64 { return b.manager.Counters()[rcm.BacklogDropped] }
	for deadline := time.Now().Add(testTimeout); dropped() < 400-128; {
		if time.Now().After(deadline) {
			t.Fatalf("%d requests were dropped", dropped())
		}
		b.dev.Progress()
	}
	// They are shown when the way to their peer is known, which another goroutine looks for.
	waits(t, func() bool { return l.Waiting() == 128 })
	cancel()
	running.Wait()
	a.forgotten(t)
	if n, held := l.Waiting(), b.manager.Usage(); n > 128 || held.HalfOpen > 128 {
		t.Errorf("%d requests wait, %+v", n, held)
	}
	l.Close()
	b.forgotten(t)
	if n := l.Waiting(); n != 0 {
		t.Errorf("%d requests wait for a listener that is closed", n)
	}
}

// TestChurn makes and ends connections one after the other, over and over: neither
// manager nor device holds more in the end than before.
func TestChurn(t *testing.T) {
	// Nothing is lost, so nothing has to be asked again, however late an answer is.
	slowCM := cm.Options{Machine: rcm.Config{ResponseTimeout: 20, PacketLifeTime: 8}}
	_, hosts := newWorld(t, slowCM, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	n := 10_000
	switch {
	case testing.Short():
		n = 300
	case xsktest.RaceDetector:
		n = 2000
	}
	ctx := within(t, 5*testTimeout)
	var running sync.WaitGroup
	const workers = 8
	for range workers {
		running.Go(func() {
			for i := range n / workers {
				c, err := a.manager.Dial(ctx, to, a.setup())
				if err != nil {
					t.Error(err)
					return
				}
				d := s.conn(t) // of any of them
				if i%2 == 0 {
					c.Close()
				} else {
					d.Close()
				}
				c.Close()
				d.Close()
			}
		})
	}
	running.Wait()
	s.Close()
	for _, h := range hosts {
		h.forgotten(t)
		h.mr.Deregister()
		must(t, h.cq.Close())
		must(t, h.manager.Close())
		must(t, h.pd.Close())
	}
}
