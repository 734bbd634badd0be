package roce

import (
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// putRequest writes the packet psn of a SEND, a WRITE or an ATOMIC WRITE.
func (r *requester) putRequest(now Time, w *sendWQE, frame []byte) int {
	off := uint32(r.psn.Sub(uint32(w.first))) * r.pmtu()
	n := min(w.length-off, r.pmtu())
	op := w.opcode.Op()
	last, sinceAck, asked := r.psn == w.last, r.sinceAck, r.asked
	b := frame[r.path.Len():]
	spec := r.putBTH(b, &wire.BTH{
		Opcode: r.withRider(op.Packet(r.psn == w.first, last), n),
		SE:     last && op.Notify && w.flags&SendSolicited != 0,
		PadCnt: wire.PadCnt(int(n)), AckReq: r.wantsAck(now, last), PSN: r.psn,
	}, w.srqn)
	if spec.Has(wire.HasRETH) {
		wire.RETH{VA: w.remoteAddr, RKey: w.rkey, DMALen: w.length}.
			Put(b[spec.Offsets[wire.HeaderRETH]:])
	}
	switch {
	case spec.Has(wire.HasImmDt):
		wire.ImmDt{Data: w.imm}.Put(b[spec.Offsets[wire.HeaderImmDt]:])
	case spec.Has(wire.HasIETH):
		wire.IETH{RKey: w.imm}.Put(b[spec.Offsets[wire.HeaderIETH]:])
	}
	rides := spec.Has(wire.HasAPSN)
	if rides {
		a := r.common.rider
		wire.AETH{Syndrome: a.syndrome, MSN: a.msn}.Put(b[spec.Offsets[wire.HeaderAETH]:])
		wire.APSN{PSN: a.psn}.Put(b[spec.Offsets[wire.HeaderAPSN]:])
	}
	headers := wire.BTHLen + int(spec.HeaderLen)
	if !r.putPayload(now, w, off, b[headers:][:n]) {
		r.sinceAck, r.asked = sinceAck, asked // nothing was sent, so nothing asked
		if !asked.After(r.una) {
			r.ackAt = 0 // nothing is under way that the peer is to acknowledge
		}
		return 0
	}
	if op.Reply != verbs.ReplyAck {
		r.asks(r.psn.Add(1))
	}
	if rides {
		r.common.rider = nil
	}
	r.sent(r.psn.Add(1), w)
	return r.seal(&r.path, frame, headers, n)
}

// withRider returns the opcode of a packet with n bytes of payload that the rider rides on, op
// without one. No packet becomes longer by it than one with a full payload is without.
func (r *requester) withRider(op wire.Opcode, n uint32) wire.Opcode {
	if r.common.rider == nil || n+wire.AETHLen+wire.APSNLen > r.pmtu() {
		return op
	}
	if own, ok := op.WithAck(); ok {
		return own
	}
	return op
}

// putPayload copies data of a work request to dst, beginning off bytes into it. It
// reports false when it cannot, or not yet.
func (r *requester) putPayload(now Time, w *sendWQE, off uint32, dst []byte) bool {
	if w.flags&SendInline != 0 {
		copy(dst, r.sq.InlineData(r.cur, w.length)[off:])
		return true
	}
	list := r.sq.SGList(r.cur, int(w.numSGE))
	switch r.gather(r.localAccess(w), list, off, dst) {
	case mem.OK:
		r.stalls = 0
		return true
	case mem.FaultPage:
		r.wantPages(r.localAccess(w), list, off, w.length-off, 0)
		r.stall(now)
	default:
		// The memory was good when the message began and is not any more.
		r.failRequest(now, r.cur, StatusLocProtErr)
	}
	return false
}

// sent moves psn on, to the next entry when w has no more PSNs.
func (r *requester) sent(next wire.PSN, w *sendWQE) {
	if r.ahead(r.psn) < r.ahead(r.sentTop) {
		r.count.Inc(counter.Retransmits)
	} else {
		r.sentTop = next
	}
	if r.psn = next; next == w.last.Add(1) {
		r.cur++
	}
}
