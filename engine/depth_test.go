package engine_test

import (
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestDepthIsACounter: what is posted and not complete is in the counters of the device, and
// gone from them when it is complete.
func TestDepthIsACounter(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{Drop: 1})
	if err != nil {
		t.Fatal(err)
	}
	da, db := simPair(t, network, engine.Options{})
	a, b := newSide(t, da), newSide(t, db)
	connect(t, a, b)
	const n = 3
	for i := range uint64(n) {
		if err := b.qp.PostRecv(&roce.RecvWR{}); err != nil {
			t.Fatal(err)
		}
		err := a.qp.PostSend(&roce.SendWR{WRID: i, Opcode: roce.OpSend, Flags: roce.SendSignaled})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := counters(t, da)["sq_posted"]; got != n {
		t.Errorf("%d posted, want %d", got, n)
	}
	if err := network.SetFaults(sim.Faults{}); err != nil {
		t.Fatal(err)
	}
	a.wait(t, n)
	if got := counters(t, da)["sq_posted"]; got != 0 {
		t.Errorf("%d posted when all is complete", got)
	}
}
