package perf

import (
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
)

// TestPacedDatagrams: queue pairs of datagrams, which nobody connects, are told the rate too.
func TestPacedDatagrams(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev := device(t, network, 1, engine.Options{})
	c := brief(Test{Verb: Send})
	c.Type, c.QPs, c.Rate = roce.TypeUD, 2, Rate{Value: 1, Units: 'g', Paced: true}
	e, err := newEnd(dev, &c, ownSystem, wire.MTU1024, 0, nil)
	must(t, err)
	defer e.close()
	for i := range e.flows {
		if got := e.flows[i].qp.Query().RateLimit; got != 500_000 {
			t.Errorf("queue pair %d: %d kbit/s", i, got)
		}
	}
}
