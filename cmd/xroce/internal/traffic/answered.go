package traffic

import (
	"xroce/roce/wire"
	"xroce/xsk"
)

// Answered counts the RoCE packets that a peer sent while it was fuzzed.
type Answered struct {
	Link xsk.Link
	// Peer is whose packets count.
	Peer wire.GID

	Opcodes   [256]uint64
	Syndromes [256]uint64 // of acknowledges
	Damaged   uint64      // no RoCE packets, or with a wrong ICRC
	Others    uint64      // of other hosts

	packet wire.Packet
	batch  [64]xsk.RxFrame
}

// Poll takes what came.
func (a *Answered) Poll() error {
	n := a.Link.Receive(a.batch[:])
	for i := range a.batch[:n] {
		a.take(&a.batch[i])
	}
	a.Link.Release(a.batch[:n])
	return nil
}

func (a *Answered) take(f *xsk.RxFrame) {
	p := &a.packet
	switch {
	case p.Decode(f.Head, f.Tail) != wire.OK || !p.VerifyICRC():
		a.Damaged++
	case p.Src != a.Peer:
		a.Others++
	default:
		a.Opcodes[p.BTH.Opcode]++
		if p.Spec.Has(wire.HasAETH) {
			a.Syndromes[p.AETH().Syndrome]++
		}
	}
}
