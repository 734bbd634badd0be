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

// eachLink runs a test for each kind of connection. Where acknowledges ride, the test has them do
// so on each opcode that there is for it.
func eachLink(t *testing.T, test func(t *testing.T, k linkKind, r *relay)) {
	for _, k := range linkKinds {
		t.Run(k.name, func(t *testing.T) {
			r := newRelay(t, k)
			test(t, k, r)
			if k.rides() && len(r.rode) != len(carriers) {
				t.Errorf("acknowledges rode on %v, want %d opcodes", r.rode, len(carriers))
			}
		})
	}
}

// TestEachFrame: of a message of 1 to 32 packets, by each operation, each frame of either
// end is lost, doubled at once and late, and damaged. So are those of the conversation around the
// message, where acknowledges ride.
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
				plays += r.eachSingle(k.alone(work{op, n}, packets))
			}
		}
		for i, op := range shortOps {
			if k.has(op) {
				plays += r.eachSingle(k.alone(work{op, 8}, i))
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
				n := packets * r.p.o.MTU.Bytes()
				plays += r.eachPair(k.alone(work{op, n}, packets))
			}
		}
		for i, op := range shortOps {
			if k.has(op) {
				plays += r.eachPair(k.alone(work{op, 8}, i))
			}
		}
		if least := 3 * len(longOps) * most * most; plays < least {
			t.Errorf("%d faults were tried, not even %d", plays, least)
		}
	})
}

// TestEachFrameOfPipeline is TestEachFrame, and each pair lost, where requests of several
// kinds are under way at once.
func TestEachFrameOfPipeline(t *testing.T) {
	eachLink(t, func(t *testing.T, k linkKind, r *relay) {
		for i := range pipelines {
			x := k.pipeline(i)
			r.eachSingle(x)
			if !testing.Short() {
				r.eachPair(x)
			}
		}
	})
}

// TestEachBitOfRider: of each packet that an acknowledge rides on, of each opcode, each bit is
// turned over: nobody believes what it says then.
func TestEachBitOfRider(t *testing.T) {
	eachLink(t, func(t *testing.T, k linkKind, r *relay) {
		if k.rides() {
			r.eachBit(k.alone(carrier(0), 0)) // has all four
		}
	})
}
