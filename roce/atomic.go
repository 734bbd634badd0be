package roce

import (
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// putAtomic writes a FETCH_ADD or a CMP_SWP.
func (r *requester) putAtomic(w *sendWQE, frame []byte) int {
	b := frame[r.path.Len():]
	spec := r.putBTH(b,
		&wire.BTH{Opcode: w.opcode.Op().Only, AckReq: true, PSN: r.psn}, w.srqn)
	compareAdd, swap := w.atomic()
	h := wire.AtomicETH{VA: w.remoteAddr, RKey: w.rkey, SwapAdd: compareAdd}
	if w.opcode == OpCmpSwap {
		h.SwapAdd, h.Compare = swap, compareAdd
	}
	h.Put(b[spec.Offsets[wire.HeaderAtomicETH]:])
	r.asks(w.last.Add(1))
	r.sent(w.last.Add(1), w)
	return r.seal(&r.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// takeAtomicAck stores the old value that an atomic found.
func (r *requester) takeAtomicAck(now Time, p *wire.Packet) {
	i := r.sq.Head()
	w := r.sq.At(i)
	if i == r.new || w.opcode.Op().Reply != verbs.ReplyAtomic || !p.AETH().Syndrome.IsACK() {
		r.badResponse(now)
		return
	}
	r.takeCredits(p.AETH())
	r.takeSmall(now, w, p, p.OrigData(), nil)
}

// executeAtomic executes FETCH_ADD and CMP_SWP.
func (s *responder) executeAtomic(p *wire.Packet) (Reason, wire.Syndrome) {
	if reason, nak := s.mayAddResource(mem.RemoteAtomic); nak != 0 {
		return reason, nak
	}
	s.receiveCQ().FlushInline()
	h := p.AtomicETH()
	var old uint64
	var fault mem.Fault
	if p.BTH.Opcode&0x1f == wire.RCFetchAdd {
		old, fault = s.keys().FetchAdd(s.peerAccess(0), h.RKey, h.VA, h.SwapAdd)
	} else {
		old, fault = s.keys().CompareSwap(s.peerAccess(0), h.RKey, h.VA, h.Compare, h.SwapAdd)
	}
	if fault != mem.OK {
		return s.refusal(fault)
	}
	s.addResource(resource{kind: resourceAtomic, value: old}, 1)
	return reasonAdmitted, 0
}
