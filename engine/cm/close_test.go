package cm_test

import (
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce"
	rcm "xroce/roce/cm"
)

// TestCloseAsksAgain loses what a manager says when it is closed: it says it again,
// until the peer has confirmed.
func TestCloseAsksAgain(t *testing.T) {
	o := quick
	o.Linger = testTimeout // as long as it takes until it is heard
	network, hosts := newWorld(t, o, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	d := s.conn(t)
	// One more than is looked for: where this is slow, an RTU is repeated, too.
	must(t, network.SetRules(sim.Rule{From: a.mac, DestQP: 1, Nth: 1, Times: 4}))
	must(t, a.manager.Close())
	over(t, d.Done())
	if err := d.Err(); !errors.Is(err, cm.ErrHungUp) {
		t.Error(err)
	}
	if err := c.Err(); !errors.Is(err, cm.ErrClosed) {
		t.Error(err)
	}
	if n := a.counted("cm_tx_retries_dreq"); n < 3 {
		t.Errorf("asked again %d times", n)
	}
}

// counted is a counter of the manager.
func (h *host) counted(name string) uint64 {
	for id := range rcm.CounterCount {
		if id.String() == name {
			return h.manager.Counters()[id]
		}
	}
	panic("no counter " + name)
}

// A skipClock is a clock that can skip time.
type skipClock struct {
	engine.Clock
	skipped atomic.Int64
}

func (c *skipClock) Now() roce.Time { return c.Clock.Now() + roce.Time(c.skipped.Load()) }

// TestCloseLongAfter closes the manager of a connection so old that what was known of
// the way to the peer is to be found out again.
func TestCloseLongAfter(t *testing.T) {
	clock := &skipClock{Clock: engine.NewSystemClock()}
	o := quick
	o.Clock, o.Linger = clock, testTimeout
	_, hosts := newWorld(t, o, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	d := s.conn(t)
	clock.skipped.Store(int64(roce.Second) * 3600)
	must(t, a.manager.Close())
	over(t, d.Done())
	if lost := a.manager.Lost(); lost != (cm.Lost{}) {
		t.Errorf("lost %+v", lost)
	}
}

// TestCloseRefuses closes a manager with requests that nobody took, and with one that
// somebody did: both peers are told at once.
func TestCloseRefuses(t *testing.T) {
	_, hosts := newWorld(t, cm.Options{}, engine.Options{}) // which asks again in 4.6 s
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	l, err := b.manager.Listen(to)
	must(t, err)
	ended := make(chan error)
	dial := func() {
		_, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
		ended <- err
	}
	go dial()
	r, err := l.Accept(within(t, testTimeout))
	must(t, err)
	go dial()
	waits(t, func() bool { return l.Waiting() == 1 })
	must(t, b.manager.Close())
	for range 2 {
		var refused *cm.RejectedError
		if err := <-ended; !errors.As(err, &refused) ||
			refused.Reason != rcm.ReasonInvalidServiceID {
			t.Error(err)
		}
	}
	if err := r.Reject(nil); !errors.Is(err, cm.ErrClosed) {
		t.Error(err)
	}
	if _, err := r.Accept(within(t, testTimeout), b.setup()); !errors.Is(err, cm.ErrClosed) {
		t.Error(err)
	}
}

// TestCloseIsBounded closes a manager whose peers are gone, from two goroutines: it
// waits for them, but not longer than it is told to.
func TestCloseIsBounded(t *testing.T) {
	network, hosts := newWorld(t, cm.Options{Linger: 50 * time.Millisecond}, engine.Options{})
	a, b := hosts[0], hosts[1]
	to := netip.AddrPortFrom(b.v4, 1)
	s := b.serve(t, to)
	c, err := a.manager.Dial(within(t, testTimeout), to, a.setup())
	must(t, err)
	s.conn(t)
	must(t, network.SetFaults(sim.Faults{Blocked: true}))
	closed := make(chan error)
	for range 2 {
		go func() { closed <- a.manager.Close() }()
	}
	must(t, errors.Join(<-closed, <-closed))
	over(t, c.Done())
	c.Close()
	over(t, c.Released())
	must(t, network.SetFaults(sim.Faults{}))
}

// waits until a condition holds.
func waits(t testing.TB, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testTimeout); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal("it does not come about")
		}
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
}
