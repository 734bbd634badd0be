package roce

import (
	"encoding/binary"

	"xroce/roce/mem"
	"xroce/roce/wire"
)

// executeAtomicWrite stores eight bytes at once.
func (q *QP) executeAtomicWrite(p *wire.Packet) (Step, wire.Syndrome) {
	if step, nak := q.mayStore(mem.RemoteWrite); nak != 0 {
		return step, nak
	}
	reth := p.RETH()
	var word [8]byte
	if reth.DMALen != 8 || p.CopyPayload(word[:]) != 8 || p.PayloadLen() != 8 {
		return stepLength, wire.NAKInvalidRequest
	}
	q.receiveCQ().FlushInline()
	if fault := q.keys.StoreWord(q.peer(0), reth.RKey, reth.VA,
		binary.NativeEndian.Uint64(word[:])); fault != mem.OK {
		return q.refusal(fault)
	}
	q.store(resource{kind: resourceDone}, 1)
	return stepAdmitted, 0
}
