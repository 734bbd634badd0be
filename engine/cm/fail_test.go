package cm_test

import (
	"context"
	"errors"
	"net/netip"
	"testing"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// errPrepare is what an application fails with.
var errPrepare = errors.New("cannot prepare")

// A failure is how an end does not get its queue pair connected.
type failure struct {
	name  string
	setup func(h *host, t *testing.T, cancel func()) cm.Setup
	want  error
}

var failures = []failure{
	{"Prepare fails", func(h *host, _ *testing.T, _ func()) cm.Setup {
		s := h.setup()
		s.Prepare = func(*engine.QP) error { return errPrepare }
		return s
	}, errPrepare},
	{"cancelled in Prepare", func(h *host, _ *testing.T, cancel func()) cm.Setup {
		s := h.setup()
		s.Prepare = func(*engine.QP) error { cancel(); return nil }
		return s
	}, context.Canceled},
	{"the queue pair is in ERR", func(h *host, t *testing.T, _ func()) cm.Setup {
		s := h.setup()
		qp, err := h.dev.CreateQP(h.pd, s.Init)
		must(t, err)
		must(t, qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState))
		t.Cleanup(func() { must(t, qp.Close()) })
		s.QP, s.Prepare = qp, nil
		return s
	}, nil},
}

// TestAcceptFails lets the passive end fail at each point: the peer is told, and nothing
// is left at either.
func TestAcceptFails(t *testing.T) {
	for _, tt := range failures {
		t.Run(tt.name, func(t *testing.T) {
			_, hosts := newWorld(t, cm.Options{}, engine.Options{}) // which asks again in 4.6 s
			a, b := hosts[0], hosts[1]
			to := netip.AddrPortFrom(b.v4, 1)
			l, err := b.manager.Listen(to)
			must(t, err)
			ended := make(chan error)
			go func() {
				_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
				ended <- err
			}()
			r, err := l.Accept(within(t, testTimeout))
			must(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, err := r.Accept(ctx, tt.setup(b, t, cancel))
			if c != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			var refused *cm.RejectedError
			if err := <-ended; !errors.As(err, &refused) ||
				refused.Reason != rcm.ReasonNoResources {
				t.Error(err)
			}
			if err := r.Reject(nil); err == nil {
				t.Error("refused twice")
			}
			must(t, a.manager.Close())
			b.forgotten(t)
		})
	}
}

// TestDialFails lets the active end fail at each point: the peer learns it if it was
// asked, and nothing is left at either.
func TestDialFails(t *testing.T) {
	for _, tt := range failures {
		t.Run(tt.name, func(t *testing.T) {
			_, hosts := newWorld(t, cm.Options{}, engine.Options{})
			a, b := hosts[0], hosts[1]
			to := netip.AddrPortFrom(b.v4, 1)
			s := b.serve(t, to)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			c, err := a.manager.Dial(ctx, to, tt.setup(a, t, cancel))
			if c != nil || err == nil || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("%v, want %v", err, tt.want)
			}
			if asked := a.counted("cm_tx_msgs_req") > 0; asked != (tt.want == nil) {
				t.Errorf("asked: %v", asked)
			}
			if tt.want == nil {
				var refused *cm.RejectedError
				if err := <-s.refused; !errors.As(err, &refused) ||
					refused.Reason != rcm.ReasonConsumer {
					t.Error(err)
				}
			}
			a.forgotten(t)
			s.Close()
			b.forgotten(t)
		})
	}
}

// TestRTUIsLost loses the word that the active end is ready: the passive end asks again until
// it has the word.
func TestRTUIsLost(t *testing.T) {
	// The REP is asked for again after 0.3 s, the REQ after 9 s, however late anybody is:
	// what comes second is the RTU.
	o := cm.Options{Machine: rcm.Config{ResponseTimeout: 16, PacketLifeTime: 20}}
	network, hosts := newWorld(t, o, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	must(t, network.SetRules(sim.Rule{From: a.mac, DestQP: 1, Nth: 2})) // the first is the REQ
	c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	d := s.conn(t)
	if b.counted("cm_tx_retries_rep") == 0 || a.counted("cm_rx_duplicates_rep") == 0 {
		t.Error("the RTU was not lost")
	}
	c.Close()
	d.Close()
}

// TestRTUIsLostAndDataIsNot loses the word that the active end is ready, which asks for
// patience besides: the passive end takes its data for that word.
func TestRTUIsLostAndDataIsNot(t *testing.T) {
	o := cm.Options{Machine: rcm.Config{ResponseTimeout: 28}} // which asks again after 18 minutes
	network, hosts := newWorld(t, o, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	must(t, network.SetRules(sim.Rule{From: a.mac, DestQP: 1, Nth: 2})) // the first is the REQ
	c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	must(t, c.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, SGList: []roce.SGE{a.mr.SGE(0, 100)},
	}))
	var wcs [1]roce.Completion
	n, err := b.cq.Wait(within(t, testTimeout), wcs[:])
	if err != nil || n != 1 || wcs[0].ByteLen != 100 {
		t.Fatalf("%d completions, %+v, %v", n, wcs[0], err)
	}
	d := s.conn(t)
	if b.counted("cm_rx_msgs_rtu") != 0 {
		t.Error("the RTU was not lost")
	}
	if e, ok := b.dev.PollEvent(); ok {
		t.Errorf("event %+v, of a queue pair in RTS", e)
	}
	c.Close()
	d.Close()
}

// TestRTUIsLostAndHungUp loses the word that the active end is ready, and it sends and hangs
// up before it is asked for that again: the passive end gets the connection all the same, and
// what came by it.
func TestRTUIsLostAndHungUp(t *testing.T) {
	network, hosts := newWorld(t, cm.Options{}, engine.Options{}) // which asks again in 4.6 s
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	must(t, network.SetRules(sim.Rule{From: a.mac, DestQP: 1, Nth: 2})) // the first is the REQ
	c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	must(t, c.QP().PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 100)},
	}))
	var wcs [1]roce.Completion
	if n, err := a.cq.Wait(within(t, testTimeout), wcs[:]); err != nil || n != 1 ||
		wcs[0].Status != roce.StatusSuccess {
		t.Fatalf("%d completions, %+v, %v", n, wcs[0], err)
	}
	c.Close()
	d := s.conn(t)
	over(t, d.Done())
	if n, err := b.cq.Poll(wcs[:]); err != nil || n != 1 || wcs[0].ByteLen != 100 {
		t.Errorf("%d completions, %+v, %v", n, wcs[0], err)
	}
	d.Close()
}

// A lateContext is looked at only when something has happened.
type lateContext struct {
	context.Context
	happened func()
}

func (c *lateContext) Done() <-chan struct{} {
	c.happened()
	return c.Context.Done()
}

// TestAcceptAndHungUp: a peer connects and hangs up at once. The passive end gets the
// connection, although it is over: something may have come by it.
func TestAcceptAndHungUp(t *testing.T) {
	_, hosts := newWorld(t, cm.Options{}, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	l, err := b.manager.Listen(to)
	must(t, err)
	for range 16 { // the end may be seen first, or the beginning
		before := b.counted("cm_rx_msgs_dreq")
		go func() {
			c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
			if err != nil {
				t.Error(err)
				return
			}
			c.Close()
		}()
		r, err := l.Accept(within(t, testTimeout))
		must(t, err)
		c, err := r.Accept(&lateContext{within(t, testTimeout), func() {
			waits(t, func() bool { return b.counted("cm_rx_msgs_dreq") > before })
		}}, b.setup())
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Err(); !errors.Is(err, cm.ErrHungUp) {
			t.Error(err)
		}
		c.Close()
	}
}
