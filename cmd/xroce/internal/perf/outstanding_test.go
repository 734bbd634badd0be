package perf

import (
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/oob/perftest"
	"xroce/engine/sim"
	"xroce/roce"
)

// TestOutstanding: READs and atomics outstanding are as many as -o says at the end that has less,
// and both ends tell so. A tool knows its own number alone.
func TestOutstanding(t *testing.T) {
	for _, test := range []Test{{Verb: Read}, {Read, true}, {Verb: Atomic}} {
		for _, tt := range []struct {
			outs   [2]int // the client's first, 0 for the default
			asTool bool
			want   [2]int
		}{
			{[2]int{3, 0}, false, [2]int{3, 3}},
			{[2]int{0, 3}, false, [2]int{3, 3}},
			{[2]int{5, 3}, false, [2]int{3, 3}},
			{[2]int{3, 5}, true, [2]int{3, 5}},
			{[2]int{5, 3}, true, [2]int{3, 3}},
			{[2]int{}, false, [2]int{roce.MaxRdAtomic, roce.MaxRdAtomic}},
		} {
			c := brief(test)
			c.Iters = 20
			p := newPair(t, c)
			for i, n := range tt.outs {
				p.ends[i].OutReads, p.ends[i].asTool = n, tt.asTool
			}
			for i, err := range p.run(t) {
				if err != nil {
					t.Fatal(err)
				}
				info := p.records[i].Info
				if said := *info.testInfo().Outstanding; said != tt.want[i] {
					t.Errorf("%s, %+v: end %d says %d", test.Name(), tt, i, said)
				}
			}
		}
	}
}

// TestOutstandingUsed: a queue pair has no more READs and atomics outstanding than either end says,
// and answers what this one says.
func TestOutstandingUsed(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	must(t, err)
	dev, other := device(t, network, 1, engine.Options{}), device(t, network, 2, engine.Options{})
	c := brief(Test{Verb: Read})
	for _, outs := range [][2]int{{3, 9}, {9, 3}} {
		c.OutReads = outs[0]
		e, err := newEnd(dev, &c, ownSystem, dev.ActiveMTU(), 1, nil)
		must(t, err)
		remote := perftest.Endpoint{OutReads: uint16(outs[1]), QPN: 7, GID: other.GIDs()[1]}
		err = connect(t.Context(), dev, Link{
			QP: e.flows[0].qp, Local: e.local[0], Remote: remote, MTU: e.mtu,
			Vector: engine.AddressVector{DGID: remote.GID, SGIDIndex: 1, HopLimit: 64},
		})
		must(t, err)
		got := e.flows[0].qp.Query()
		if int(got.MaxRdAtomic) != 3 || int(got.MaxDestRdAtomic) != outs[0] {
			t.Errorf("%d: %d asked, %d answered", outs, got.MaxRdAtomic, got.MaxDestRdAtomic)
		}
		e.close()
	}
}
