package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// putReadRequest asks for what is missing of a READ from psn on.
func (q *QP) putReadRequest(w *sendWQE, frame []byte) int {
	r := &q.req
	length := w.length
	if q.sel != nil {
		// Up to the first packet that is here already. The responder answers one
		// part of a READ at a time.
		if hole := q.sel.early.hole(r.psn, w.last.Add(1)); !hole.After(w.last) {
			length = uint32(hole.Sub(uint32(w.first))) * q.pmtu
		}
	}
	off := uint32(r.psn.Sub(uint32(w.first))) * q.pmtu
	b := frame[q.path.Len():]
	spec := q.putBTH(b, wire.BTH{Opcode: wire.RCReadRequest, AckReq: true, PSN: r.psn}, w.srqn)
	wire.RETH{VA: w.remoteAddr + uint64(off), RKey: w.rkey, DMALen: length - off}.
		Put(b[spec.Offsets[wire.HeaderRETH]:])
	q.sent(w.last.Add(1), w)
	return q.seal(&q.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// takeReadResponse stores the data of a READ response packet. FLUSH and ATOMIC
// WRITE are answered by one without data.
func (q *QP) takeReadResponse(now Time, p *wire.Packet) {
	r := &q.req
	i := q.sq.Head()
	w := q.sq.At(i)
	if i == r.new || w.opcode.Op().Reply != verbs.ReplyData || !q.responseFits(w, p) {
		q.badResponse(now)
		return
	}
	off := uint32(p.BTH.PSN.Sub(uint32(w.first))) * q.pmtu
	list := q.sq.SGList(i, int(w.numSGE))
	if p.BTH.PSN == w.last && q.carriesInline(w) {
		q.takeSmall(now, w, p, p.Payload, p.PayloadTail)
		return
	}
	q.sendCQ.FlushInline()
	if fault := q.scatterPacket(q.own(w), list, off, p); fault != mem.OK {
		q.missResult(now, w, p, off, fault)
		return
	}
	r.una = p.BTH.PSN.Add(1)
	if p.BTH.PSN == w.last {
		q.completeSend(now, w, w.length)
	}
	q.progress(now)
}

// responseFits reports whether a READ response is what its PSN calls for. A
// responder may begin the answer to a repeated READ with FIRST or ONLY, as the
// architecture has it, or go on with MIDDLE or LAST, as rxe does. A READ that
// asked for a hole alone ends where the hole does.
func (q *QP) responseFits(w *sendWQE, p *wire.Packet) bool {
	psn := p.BTH.PSN
	length := w.length
	if w.opcode != OpRead {
		length = 0
	}
	off := uint32(psn.Sub(uint32(w.first))) * q.pmtu
	if uint32(p.PayloadLen()) != min(length-off, q.pmtu) {
		return false
	}
	if p.Spec.Has(wire.HasAETH) && !p.AETH().Syndrome.IsACK() {
		return false
	}
	if p.Spec.Is(wire.ClassLast) != (psn == w.last) && q.sel == nil {
		return false
	}
	return psn != w.first || p.Spec.Is(wire.ClassFirst)
}

// executeRead remembers a READ and queues its answer.
func (q *QP) executeRead(p *wire.Packet) (Step, wire.Syndrome) {
	s := &q.rsp
	reth := p.RETH()
	if step, nak := q.mayStore(mem.RemoteRead); nak != 0 {
		return step, nak
	}
	if reth.DMALen > MaxMessage {
		return stepLength, wire.NAKInvalidRequest
	}
	by := q.peer(q.keys.Epoch())
	if reth.DMALen > 0 {
		q.receiveCQ().FlushInline()
		f := q.keys.Ready(by, reth.RKey, reth.VA, int(reth.DMALen), mem.RemoteRead)
		if f != mem.OK {
			return q.refusal(f)
		}
	}
	psn := s.psn
	q.store(resource{
		kind: resourceRead, by: by, va: reth.VA, rkey: reth.RKey, length: reth.DMALen,
	}, responses(reth.DMALen, q.pmtu)).answer(psn, 0, reth.DMALen, q.pmtu)
	return stepAdmitted, 0
}

// putReadResponse writes the next response of a READ.
func (q *QP) putReadResponse(now Time, a *answer, res *resource, frame []byte) int {
	off := uint32(res.cur.Sub(uint32(res.first))) * q.pmtu
	n := min(res.end-off, q.pmtu)
	var op wire.Opcode
	switch isFirst, isLast := res.cur == res.start, res.cur == res.stop; {
	case isFirst && isLast:
		op = wire.RCReadRespOnly
	case isFirst:
		op = wire.RCReadRespFirst
	case isLast:
		op = wire.RCReadRespLast
	default:
		op = wire.RCReadRespMiddle
	}
	b := frame[q.path.Len():]
	spec := q.putBTH(b, wire.BTH{Opcode: op, PadCnt: wire.PadCnt(int(n)), PSN: res.cur}, 0)
	headers := wire.BTHLen + int(spec.HeaderLen)
	// The key is checked again for each packet: it may be gone by now.
	if n > 0 {
		switch q.keys.Load(res.by, res.rkey, res.va+uint64(off), b[headers:][:n],
			mem.RemoteRead) {
		case mem.OK:
		case mem.FaultPage:
			q.awaitPage(now, res, off)
			return 0
		default:
			return q.refuseRead(now, res, frame)
		}
	}
	if spec.Has(wire.HasAETH) {
		wire.AETH{Syndrome: q.credits(), MSN: a.msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	}
	if res.cur == res.stop {
		res.queued, res.answered = false, true
		q.rsp.fifo.pop()
	} else {
		res.cur = res.cur.Add(1)
	}
	return q.seal(&q.path, frame, headers, n)
}

// refuseRead ends a READ whose memory is gone, and with it the QP.
func (q *QP) refuseRead(now Time, res *resource, frame []byte) int {
	q.lastDrop = stepRKey
	q.count.Inc(counter.SentFatalNAK)
	n := q.putAck(res.cur, wire.NAKRemoteAccessError, q.rsp.msn, frame)
	q.rsp.fifo.clear()
	if q.State() != StateErr {
		q.raise(EventQPAccessErr)
		q.enterError(now)
	}
	return n
}

// replayRead reports whether a READ lies inside the remembered one.
func (q *QP) replayRead(p *wire.Packet, res *resource) bool {
	reth := p.RETH()
	off := uint32(p.BTH.PSN.Sub(uint32(res.first))) * q.pmtu
	return q.attr.Access&mem.RemoteRead != 0 && reth.RKey == res.rkey &&
		reth.VA == res.va+uint64(off) && reth.DMALen <= res.length-off
}
