package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// putReadRequest asks for what is missing of a READ from psn on.
func (r *requester) putReadRequest(w *sendWQE, frame []byte) int {
	length := w.length
	if end := r.recovery.readEnd(r.psn, w.last.Add(1)); !end.After(w.last) {
		length = uint32(end.Sub(uint32(w.first))) * r.pmtu()
	}
	off := uint32(r.psn.Sub(uint32(w.first))) * r.pmtu()
	b := frame[r.path.Len():]
	spec := r.putBTH(b, &wire.BTH{Opcode: wire.RCReadRequest, AckReq: true, PSN: r.psn}, w.srqn)
	wire.RETH{VA: w.remoteAddr + uint64(off), RKey: w.rkey, DMALen: length - off}.
		Put(b[spec.Offsets[wire.HeaderRETH]:])
	r.asks(w.last.Add(1))
	r.sent(w.last.Add(1), w)
	return r.seal(&r.path, frame, wire.BTHLen+int(spec.HeaderLen), 0)
}

// takeReadResponse stores the data of a READ response packet. FLUSH and ATOMIC
// WRITE have one without data as response.
func (r *requester) takeReadResponse(now Time, p *wire.Packet) {
	i := r.sq.Head()
	w := r.sq.At(i)
	if i == r.new || w.opcode.Op().Reply != verbs.ReplyData || !r.responseFits(w, p) {
		r.badResponse(now)
		return
	}
	off := uint32(p.BTH.PSN.Sub(uint32(w.first))) * r.pmtu()
	list := r.sq.SGList(i, int(w.numSGE))
	if p.BTH.PSN == w.last && r.carriesInline(w) {
		r.takeSmall(now, w, p, p.Payload, p.PayloadTail)
		return
	}
	r.sendCQ.FlushInline()
	if fault := r.scatterPacket(r.localAccess(w), list, off, p); fault != mem.OK {
		r.missResult(now, w, p, off, fault)
		return
	}
	r.una = p.BTH.PSN.Add(1)
	if p.BTH.PSN == w.last {
		r.completeSend(now, w, w.length)
	}
	r.progress(now)
}

// responseFits reports whether a READ response is what its PSN calls for. A
// responder may begin the response to a repeated READ with FIRST or ONLY, as the
// architecture has it, or go on with MIDDLE or LAST, as rxe does. A READ that
// asked for a hole alone ends where the hole does.
func (r *requester) responseFits(w *sendWQE, p *wire.Packet) bool {
	psn := p.BTH.PSN
	length := w.length
	if w.opcode != OpRead {
		length = 0
	}
	off := uint32(psn.Sub(uint32(w.first))) * r.pmtu()
	if uint32(p.PayloadLen()) != min(length-off, r.pmtu()) {
		return false
	}
	if p.Spec.Has(wire.HasAETH) && !p.AETH().Syndrome.IsACK() {
		return false
	}
	if p.Spec.Is(wire.ClassLast) != (psn == w.last) && !r.recovery.selective() {
		return false
	}
	return psn != w.first || p.Spec.Is(wire.ClassFirst)
}

// executeRead remembers a READ and queues its response.
func (s *responder) executeRead(p *wire.Packet) (Reason, wire.Syndrome) {
	reth := p.RETH()
	if reason, nak := s.mayAddResource(mem.RemoteRead); nak != 0 {
		return reason, nak
	}
	if reth.DMALen > MaxMessage {
		return reasonLength, wire.NAKInvalidRequest
	}
	by := s.peerAccess(s.keys().Epoch())
	if reth.DMALen > 0 {
		s.receiveCQ().FlushInline()
		f := s.keys().Ready(by, reth.RKey, reth.VA, int(reth.DMALen), mem.RemoteRead)
		if f != mem.OK {
			return s.refusal(f)
		}
	}
	psn := s.psn
	s.addResource(resource{
		kind: resourceRead, by: by, va: reth.VA, rkey: reth.RKey, length: reth.DMALen,
	}, responsePackets(reth.DMALen, s.pmtu())).respond(psn, 0, reth.DMALen, s.pmtu())
	return reasonAdmitted, 0
}

// putReadResponse writes the next response of a READ.
func (s *responder) putReadResponse(now Time, a *response, res *resource, frame []byte) int {
	off := uint32(res.cur.Sub(uint32(res.first))) * s.pmtu()
	n := min(res.end-off, s.pmtu())
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
	b := frame[s.path.Len():]
	spec := s.putBTH(b, &wire.BTH{Opcode: op, PadCnt: wire.PadCnt(int(n)), PSN: res.cur}, 0)
	headers := wire.BTHLen + int(spec.HeaderLen)
	// The key is checked again for each packet: it may be gone by now.
	if n > 0 {
		switch s.common.recent.Load(s.keys(), res.by, res.rkey, res.va+uint64(off), b[headers:][:n],
			mem.RemoteRead) {
		case mem.OK:
			res.missed = 0
		case mem.FaultPage:
			s.awaitPage(now, res, off)
			return 0
		default:
			return s.refuseRead(now, res, frame)
		}
	}
	if spec.Has(wire.HasAETH) {
		wire.AETH{Syndrome: s.credits(), MSN: a.msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
	}
	if res.cur == res.stop {
		res.queued, res.responded = false, true
		s.responses.pop()
	} else {
		res.cur = res.cur.Add(1)
	}
	return s.seal(&s.path, frame, headers, n)
}

// refuseRead ends a READ whose memory is gone, and with it the QP.
//
// Not if all of the response has left before, and the READ is repeated: as a rule the peer has it,
// and the key has gone because it said so. A peer that has not is told, and fails; one that has
// takes the NAK for an old one. This end goes on in either case, where rxe gives up its queue pair.
func (s *responder) refuseRead(now Time, res *resource, frame []byte) int {
	if res.responded {
		s.lastDrop = reasonRKey
		s.count.Inc(counter.SentFatalNAK)
		res.queued = false
		s.responses.pop()
		return s.putAck(res.cur, wire.NAKRemoteAccessError, s.msn, frame)
	}
	s.lastDrop, s.badKey = reasonRKey, true
	s.count.Inc(counter.SentFatalNAK)
	n := s.putAck(res.cur, wire.NAKRemoteAccessError, s.msn, frame)
	s.responses.clear()
	if s.State() != StateErr {
		s.enterError()
		s.raise(EventQPAccessErr)
	}
	return n
}

// replayRead reports whether a READ lies inside the remembered one.
func (s *responder) replayRead(p *wire.Packet, res *resource) bool {
	reth := p.RETH()
	off := uint32(p.BTH.PSN.Sub(uint32(res.first))) * s.pmtu()
	return s.attr.Access&mem.RemoteRead != 0 && reth.RKey == res.rkey &&
		reth.VA == res.va+uint64(off) && reth.DMALen <= res.length-off
}
