package roce_test

import (
	"testing"

	"xroce/roce"
)

// longOps are the operations of any length, shortOps those of one packet; XRC has neither
// FLUSH nor ATOMIC WRITE.
var (
	longOps  = append([]roce.Opcode{roce.OpSendInv}, allOps...)
	shortOps = []roce.Opcode{
		roce.OpFetchAdd, roce.OpCmpSwap, roce.OpAtomicWrite, roce.OpFlush,
	}
)

// has reports whether a kind of connection has an operation.
func (k linkKind) has(op roce.Opcode) bool {
	return k.typ == roce.TypeRC || op != roce.OpAtomicWrite && op != roce.OpFlush
}

// only leaves out of a batch what a kind of connection does not have.
func (k linkKind) only(batch []work) (rest []work) {
	for _, w := range batch {
		if k.has(w.op) {
			rest = append(rest, w)
		}
	}
	return rest
}

// eachLink runs a test for each kind of connection.
func eachLink(t *testing.T, test func(t *testing.T, k linkKind, r *relay)) {
	for _, k := range linkKinds {
		t.Run(k.name, func(t *testing.T) { test(t, k, newRelay(t, k)) })
	}
}

// TestEachFrame: of a message of 1 to 32 packets, by each operation, each frame of either
// end is lost, doubled at once and late, and damaged.
func TestEachFrame(t *testing.T) {
	most, step := 32, 1
	if testing.Short() {
		step = 5
	}
	eachLink(t, func(t *testing.T, k linkKind, r *relay) {
		plays := 0
		for _, op := range longOps {
			for packets := 1; packets <= most; packets += step {
				// The last packet is full, or has one byte.
				n := packets*r.p.o.MTU.Bytes() - 255*(packets%2)
				plays += r.eachSingle([]work{{op, n}})
			}
		}
		for _, op := range shortOps {
			if k.has(op) {
				plays += r.eachSingle([]work{{op, 8}})
			}
		}
		if least := 4 * len(longOps) * (most * most / 2) / step; plays < least {
			t.Errorf("%d faults were tried, not even %d", plays, least)
		}
	})
}

// TestEachPairOfFrames: of a message of 1 to 6 packets each two frames are lost, or one is
// and the other comes twice, of either end and among those that are sent again.
func TestEachPairOfFrames(t *testing.T) {
	most := 6
	if testing.Short() {
		most = 2
	}
	eachLink(t, func(t *testing.T, k linkKind, r *relay) {
		plays := 0
		for _, op := range longOps {
			for packets := 1; packets <= most; packets++ {
				plays += r.eachPair([]work{{op, packets * r.p.o.MTU.Bytes()}})
			}
		}
		for _, op := range shortOps {
			if k.has(op) {
				plays += r.eachPair([]work{{op, 8}})
			}
		}
		if least := 3 * len(longOps) * most * most; plays < least {
			t.Errorf("%d faults were tried, not even %d", plays, least)
		}
	})
}

// pipelines are work requests that are under way at once.
var pipelines = [][]work{
	{
		{roce.OpSend, 300},
		{roce.OpWrite, 700},
		{roce.OpRead, 600},
		{roce.OpFetchAdd, 8},
		{roce.OpSendInv, 10},
		{roce.OpWriteImm, 257},
		{roce.OpRead, 1},
		{roce.OpSend, 0},
	},
	{
		{roce.OpRead, 1000},
		{roce.OpSendImm, 5},
		{roce.OpAtomicWrite, 8},
		{roce.OpCmpSwap, 8},
		{roce.OpFlush, 8},
		{roce.OpSendInv, 513},
		{roce.OpFetchAdd, 8},
		{roce.OpWrite, 0},
	},
	{
		{roce.OpWrite, 1},
		{roce.OpSend, 1},
		{roce.OpSendInv, 1},
		{roce.OpSendInv, 1},
		{roce.OpWrite, 1},
		{roce.OpSendImm, 1},
		{roce.OpWriteImm, 1},
		{roce.OpSend, 1},
	},
	{
		{roce.OpRead, 300},
		{roce.OpRead, 300},
		{roce.OpFetchAdd, 8},
		{roce.OpFetchAdd, 8},
		{roce.OpRead, 8},
		{roce.OpCmpSwap, 8},
		{roce.OpRead, 300},
		{roce.OpSend, 300},
	},
}

// TestEachFrameOfPipeline is TestEachFrame, and each pair lost, where requests of several
// kinds are under way at once.
func TestEachFrameOfPipeline(t *testing.T) {
	eachLink(t, func(t *testing.T, k linkKind, r *relay) {
		for _, batch := range pipelines {
			r.eachSingle(k.only(batch))
			if !testing.Short() {
				r.eachPair(k.only(batch))
			}
		}
	})
}
