package perf

import (
	"errors"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// TestODP: memory is paged on demand where that was asked for, and nowhere else.
func TestODP(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1, engine.Options{})
	for _, odp := range []bool{false, true} {
		for _, verb := range []Verb{Send, Write, Read, Atomic} {
			c := brief(Test{Verb: verb})
			c.ODP = odp
			r, err := newRegion(dev, &c, 1<<14)
			if err != nil {
				t.Fatal(err)
			}
			if got := r.mr.Access()&mem.OnDemand != 0; got != odp {
				t.Errorf("%v: paged on demand: %v, asked for: %v", verb, got, odp)
			}
			r.deregister()
		}
	}
}

// TestInlineRecv: what a completion may carry is told to the queue pairs, which refuse more than
// there is.
func TestInlineRecv(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1, engine.Options{})
	for n, want := range map[int]error{
		engine.NoInlineRecv: nil, 0: nil, roce.MaxInlineRecv: nil,
		roce.MaxInlineRecv + 1: roce.ErrInvalid,
	} {
		c := brief(Test{Verb: Send})
		c.InlineRecv = n
		e, err := newEnd(dev, &c, ownSystem, wire.MTU1024, 0, nil)
		if !errors.Is(err, want) {
			t.Errorf("%d bytes: %v, want %v", n, err, want)
		}
		if err == nil {
			e.close()
		}
	}
}
