package engine_test

import (
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestPostLists: what is posted as a list wakes the queue once, arrives in order, and what was
// posted before an error goes all the same.
func TestPostLists(t *testing.T) {
	network, err := sim.NewNetwork(1, engine.NewSystemClock(), sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	da, db := simPair(t, network, engine.Options{})
	a, b := newSide(t, da), newSide(t, db)
	connect(t, a, b)
	const n = 3
	recvs, sends := make([]roce.RecvWR, n), make([]roce.SendWR, n+1)
	for i := range sends {
		sends[i] = roce.SendWR{WRID: uint64(i), Opcode: roce.OpSend, Flags: roce.SendSignaled}
	}
	sends[n].Opcode = 0xff
	if got, err := b.qp.PostRecvs(recvs); got != n || err != nil {
		t.Fatalf("%d receives posted: %v", got, err)
	}
	if got, err := a.qp.PostSends(sends); got != n || !errors.Is(err, roce.ErrInvalid) {
		t.Fatalf("%d sends posted: %v", got, err)
	}
	for i, wc := range a.wait(t, n) {
		if wc.WRID != uint64(i) || wc.Status != roce.StatusSuccess {
			t.Errorf("completion %d is %+v", i, wc)
		}
	}
	b.wait(t, n)
}
