package engine_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/cc"
)

// TestCongestionOptions: a device takes congestion control with parameters that make sense,
// and a QP another than its device only where there is any.
func TestCongestionOptions(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{})
	port, err := network.NewPort(sim.PortConfig{MAC: [6]byte{2, 9}})
	if err != nil {
		t.Fatal(err)
	}
	o := engine.Options{
		Clock: clock, Direct: true, Rand: rand.NewPCG(1, 2),
		Congestion: &cc.Config{CNPDSCP: 64},
	}
	if _, err := engine.OpenLink(port, port, o); !errors.Is(err, cc.ErrConfig) {
		t.Errorf("a DSCP of 64: %v", err)
	}
	swift, unknown := cc.AlgorithmSwift, cc.Algorithm(77)
	for _, config := range []*cc.Config{nil, {Algorithm: cc.AlgorithmDCQCN}} {
		o.Congestion = config
		a, b := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), o)
		for _, d := range []*engine.Device{a, b} {
			cq, err := d.CreateCQ(16)
			if err != nil {
				t.Fatal(err)
			}
			init := engine.QPInit{SendCQ: cq, RecvCQ: cq, Congestion: &swift}
			qp, err := d.CreateQP(d.AllocPD(), init)
			if config == nil {
				if !errors.Is(err, roce.ErrInvalid) {
					t.Errorf("a QP with Swift on a device without: %v", err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			init.Congestion = &unknown
			if _, err := d.CreateQP(d.AllocPD(), init); !errors.Is(err, roce.ErrInvalid) {
				t.Errorf("a QP with an unknown algorithm: %v", err)
			}
			if err := qp.Init(0); err != nil {
				t.Fatal(err)
			}
			peer := engine.Endpoint{QPN: 0x77, GID: d.GIDTable()[0].GID}
			if err := qp.Connect(t.Context(), peer, peer, engine.ConnectOptions{}); err != nil {
				t.Fatal(err)
			}
			if got := qp.Query().Congestion; got != swift {
				t.Errorf("the QP has %s", got)
			}
		}
	}
	if o.Congestion.CNPDSCP != 0 {
		t.Error("the caller's configuration was changed")
	}
}
