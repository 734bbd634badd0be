package roce

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// putAtomic writes a FETCH_ADD or a CMP_SWP.
func (q *QP) putAtomic(w *sendWQE, frame []byte) int {
	b := frame[q.path.Len():]
	spec := q.putBTH(b,
		wire.BTH{Opcode: w.opcode.Op().Only, AckReq: true, PSN: q.req.psn}, w.srqn)
	compareAdd, swap := w.atomic()
	h := wire.AtomicETH{VA: w.remoteAddr, RKey: w.rkey, SwapAdd: compareAdd}
	if w.opcode == OpCmpSwap {
		h.SwapAdd, h.Compare = swap, compareAdd
	}
	h.Put(b[spec.Offsets[wire.HeaderAtomicETH]:])
	q.sent(w.last.Add(1), w)
	return q.seal(&q.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// takeAtomicAck stores the old value that an atomic found.
func (q *QP) takeAtomicAck(now Time, p *wire.Packet) {
	r := &q.req
	i := q.sq.Head()
	w := q.sq.At(i)
	if i == r.new || w.opcode.Op().Reply != verbs.ReplyAtomic || !p.AETH().Syndrome.IsACK() {
		q.badResponse(now)
		return
	}
	q.req.credit.update(p.AETH())
	q.takeSmall(now, w, p, p.OrigData(), nil)
}

// executeAtomic executes FETCH_ADD and CMP_SWP.
func (q *QP) executeAtomic(p *wire.Packet) (Step, wire.Syndrome) {
	if step, nak := q.mayStore(mem.RemoteAtomic); nak != 0 {
		return step, nak
	}
	q.receiveCQ().FlushInline()
	h := p.AtomicETH()
	var old uint64
	var fault mem.Fault
	if p.BTH.Opcode&0x1f == wire.RCFetchAdd {
		old, fault = q.keys.FetchAdd(q.peer(0), h.RKey, h.VA, h.SwapAdd)
	} else {
		old, fault = q.keys.CompareSwap(q.peer(0), h.RKey, h.VA, h.Compare, h.SwapAdd)
	}
	if fault != mem.OK {
		return q.refusal(fault)
	}
	q.store(resource{kind: resourceAtomic, value: old}, 1)
	return stepAdmitted, 0
}
