package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// The completer takes the peer's responses to our requests. They come in the order of
// PSNs, and each acknowledges all PSNs before its own (IBA 9.7.5.1), so one number,
// una, says how far the peer has come. Only a READ is not completed by the ACK of a
// later request: its data must arrive. A response that skips data is an implied NAK:
// the data was lost, and is requested again.

// handleResponse takes an ACK, a NAK, a READ response or an atomic acknowledge.
func (r *requester) handleResponse(now Time, p *wire.Packet) {
	r.hearSmall(p)
	d := r.ahead(p.BTH.PSN)
	if d >= r.ahead(r.sentTop) {
		reason := reasonFuture
		if d >= 1<<23 {
			if r.takeGrant(p) || r.answersProbe(p) {
				return
			}
			reason = reasonGhost
		}
		r.drop(p, reason)
		return
	}
	switch op := p.Spec; {
	case op.Is(wire.ClassRead) || op.Is(wire.ClassAtomic):
		r.recovery.handleData(now, p)
	case p.BTH.Opcode == wire.SelectiveAck:
		r.recovery.handleSelectiveAck(now, p)
	default:
		r.handleAck(now, p.BTH.PSN, p.AETH())
	}
}

// takeGrant takes the credits of an acknowledge that repeats the last one, and
// reports whether it brought any: then it is no ghost acknowledge.
func (r *requester) takeGrant(p *wire.Packet) bool {
	c := &r.credit
	if !c.limited || p.BTH.PSN != r.una.Sub(1) || !p.Spec.Is(wire.ClassAck) ||
		!p.AETH().Syndrome.IsACK() {
		return false
	}
	before := c.lsn
	c.update(p.AETH())
	return !c.limited || c.lsn != before
}

// takeRider takes the acknowledge that rides on a request of the peer. It counts whatever comes
// of the request, which may be early, refused or a duplicate; what is old only tells of credits.
func (r *requester) takeRider(now Time, psn wire.PSN, h wire.AETH) {
	switch {
	case !h.Syndrome.IsACK(): // nothing else rides
	case r.ahead(psn) < r.ahead(r.sentTop):
		r.handleAck(now, psn, h)
	case psn == r.una.Sub(1) && r.credit.limited:
		r.credit.update(h)
	}
}

// handleAck takes an acknowledge packet, positive or negative.
func (r *requester) handleAck(now Time, psn wire.PSN, h wire.AETH) {
	switch s := h.Syndrome; s.Kind() {
	case wire.KindACK:
		r.takeCredits(h)
		r.recovery.acknowledged(now, psn.Add(1))
	case wire.KindRNRNAK:
		r.count.Inc(counter.RcvdRNR)
		if r.recovery.requestsMissing(now, psn, r.sentTop) {
			r.waitRNR(now, psn, s.Code())
		}
	case wire.KindNAK:
		if s.NAK() == wire.NAKPSNSequenceError {
			r.handleSeqNAK(now, psn)
			return
		}
		r.count.Inc(counter.RcvdFatalNAK)
		if r.acknowledge(now, psn) {
			r.fail(now, nakStatus(s.NAK()))
		}
	default:
		r.badResponse(now)
	}
}

// nakStatus is the completion status of a NAK (IBA 9.9.2.4.2).
func nakStatus(s wire.Syndrome) Status {
	switch s {
	case wire.NAKInvalidRequest:
		return StatusRemInvReqErr
	case wire.NAKRemoteAccessError:
		return StatusRemAccessErr
	default:
		return StatusRemOpErr
	}
}

// handleSeqNAK goes back to the PSN that the peer expects.
func (r *requester) handleSeqNAK(now Time, psn wire.PSN) {
	r.count.Inc(counter.PacketSeqErr)
	// While waiting for the RNR timer nothing is sent, and a second NAK for
	// the same loss is not a second loss.
	if !r.recovery.requestsMissing(now, psn, r.sentTop) || r.rnrWait || r.retried {
		return
	}
	r.retried = true
	r.retryFrom(now, psn)
}

// waitRNR pauses the send queue because the peer has no receive for psn.
func (r *requester) waitRNR(now Time, psn wire.PSN, code uint8) {
	if r.rnrWait {
		return
	}
	if r.rnrRetry == 0 {
		r.count.Inc(counter.RNRRetryExceeded)
		r.fail(now, StatusRNRRetryExc)
		return
	}
	if r.rnrRetry != rnrRetryForever {
		r.rnrRetry--
	}
	r.goBack(psn)
	r.recovery.refused(psn)
	r.rnrWait, r.mark, r.ackAt = true, now+Time(wire.RNRTimerNanos(code)), 0
	// All goes again after the wait: a sequence NAK that comes then tells of a new loss.
	r.stalled, r.retried = false, false
}

// rnrRetryForever is the RNR_RETRY that never runs out (IBA 9.7.5.2.8).
const rnrRetryForever = 7

// takeData takes the awaited response to a READ, an atomic or their like.
func (r *requester) takeData(now Time, p *wire.Packet) {
	if p.Spec.Is(wire.ClassAtomic) {
		r.takeAtomicAck(now, p)
	} else {
		r.takeReadResponse(now, p)
	}
}
