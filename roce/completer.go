package roce

import (
	"xroce/roce/counter"
	"xroce/roce/queue"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// The completer takes the peer's answers to our requests. Answers come in the
// order of PSNs, and each answers all PSNs before its own (IBA 9.7.5.1), so one
// number, una, says how far the peer has come. Only a READ is not answered by a
// later packet's ACK: its data must arrive. An answer that skips data is an
// implied NAK: the data was lost, and is asked for again.

// handleResponse takes an ACK, a NAK, a READ response or an atomic acknowledge.
func (q *QP) handleResponse(now Time, p *wire.Packet) {
	r := &q.req
	d := r.ahead(p.BTH.PSN)
	if d >= r.ahead(r.sentTop) {
		step := stepFuture
		if d >= 1<<23 {
			if q.takeGrant(p) {
				return
			}
			step = stepGhost
		}
		q.drop(p, step)
		return
	}
	switch op := p.Spec; {
	case op.Is(wire.ClassRead) || op.Is(wire.ClassAtomic):
		q.handleData(now, p)
	case p.BTH.Opcode == wire.SelectiveAck:
		q.handleSelectiveAck(now, p)
	default:
		q.handleAck(now, p.BTH.PSN, p.AETH())
	}
}

// takeGrant takes the credits of an acknowledge that repeats the last one, and
// reports whether it was for them that it came.
func (q *QP) takeGrant(p *wire.Packet) bool {
	c := &q.req.credit
	if !c.limited || p.BTH.PSN != q.req.una.Sub(1) || !p.Spec.Is(wire.ClassAck) ||
		!p.AETH().Syndrome.IsACK() {
		return false
	}
	before := c.lsn
	c.update(p.AETH())
	return !c.limited || c.lsn != before
}

// handleAck takes an acknowledge packet, positive or negative.
func (q *QP) handleAck(now Time, psn wire.PSN, h wire.AETH) {
	switch s := h.Syndrome; s.Kind() {
	case wire.KindACK:
		q.req.credit.update(h)
		if q.sel == nil && q.req.resent {
			// It may be older than the repetition, whose data is still to come.
			q.reach(now, psn.Add(1))
		} else {
			q.answered(now, psn.Add(1))
		}
	case wire.KindRNRNAK:
		q.count.Inc(counter.RcvdRNR)
		if q.missing(now, psn, q.req.sentTop) {
			q.waitRNR(now, psn, s.Code())
		}
	case wire.KindNAK:
		if s.NAK() == wire.NAKPSNSequenceError {
			q.handleSeqNAK(now, psn)
			return
		}
		q.count.Inc(counter.RcvdFatalNAK)
		if q.answered(now, psn) {
			q.fail(now, nakStatus(s.NAK()))
		}
	default:
		q.badResponse(now)
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

// answered retires everything before the PSN p and reports whether p is now the
// oldest without an answer. It is not when a READ before p misses its data,
// which is then asked for again, or when the QP has failed.
func (q *QP) answered(now Time, p wire.PSN) bool {
	if q.reach(now, p) {
		return true
	}
	switch r := &q.req; {
	case q.State() == StateErr:
	case q.sel != nil:
		q.overtaken(now, p)
	case !r.retried:
		q.count.Inc(counter.ImpliedNAK)
		r.retried = true
		q.retryFrom(now, r.una)
	}
	return false
}

// reach retires what lies before a PSN, and reports whether it is now the oldest.
func (q *QP) reach(now Time, psn wire.PSN) bool {
	before := q.req.una
	reached := q.retire(now, psn)
	if q.req.una != before {
		q.progress(now)
	}
	return reached && q.State() != StateErr
}

// retire moves una to p, completing work requests, unless one whose answer
// carries data, or is more than an acknowledge, is in the way.
func (q *QP) retire(now Time, p wire.PSN) bool {
	r := &q.req
	for r.una != p {
		w := q.sq.At(q.sq.Head())
		if w.opcode.Op().Reply != verbs.ReplyAck {
			return false
		}
		if r.ahead(w.last) >= r.ahead(p) {
			r.una = p
			return true
		}
		r.una = w.last.Add(1)
		q.completeSend(now, w, 0)
	}
	return true
}

// completeSend completes the oldest work request with success. Its place is free
// before the completion shows: whoever sees that may post at once.
func (q *QP) completeSend(now Time, w *sendWQE, byteLen uint32) {
	q.deliverSend(now, w, byteLen, nil)
}

// deliverSend is completeSend with the inline payload of the completion, nil for
// none.
func (q *QP) deliverSend(now Time, w *sendWQE, byteLen uint32, in *queue.InlinePayload) {
	op := w.opcode.Op()
	if op.WC == WCSend {
		q.count.Inc(counter.RDMASends)
	}
	if op.Count {
		q.req.out--
	}
	signaled := q.signals(w)
	wc := Completion{WRID: w.wrID, Opcode: op.WC, ByteLen: byteLen, Time: now}
	q.sq.Pop()
	if signaled {
		q.deliver(q.sendCQ, &wc, false, in)
	}
}

// signals reports whether a work request makes a completion when it succeeds.
func (q *QP) signals(w *sendWQE) bool { return w.flags&SendSignaled != 0 || q.sigAll }

// progress follows every advance of una: the retry counters start anew, the
// timer too, and what was to be sent again but is answered is skipped.
func (q *QP) progress(now Time) {
	r := &q.req
	r.retry, r.rnrRetry = q.attr.RetryCnt, q.attr.RNRRetry
	r.retried, r.resent, r.rnrWait = false, false, false
	q.stalled, q.stalls = false, 0
	if q.sel != nil {
		q.followProgress(now)
	}
	// psn fell behind una when it lies, seen from una, behind all that was sent.
	if r.ahead(r.psn) > r.ahead(r.max) {
		q.goBack(r.una)
	}
	if r.ackAt = 0; r.una != r.sentTop {
		q.startAckTimer(now)
	}
	if q.sel != nil {
		q.armProbe(now)
	}
	q.failWhenOldest(now)
}

// handleSeqNAK goes back to the PSN that the peer expects.
func (q *QP) handleSeqNAK(now Time, psn wire.PSN) {
	r := &q.req
	q.count.Inc(counter.PacketSeqErr)
	// While waiting for the RNR timer nothing is sent, and a second NAK for
	// the same loss is not a second loss.
	if !q.missing(now, psn, r.sentTop) || r.rnrWait || r.retried {
		return
	}
	r.retried = true
	q.retryFrom(now, psn)
}

// waitRNR pauses the send queue because the peer has no receive for psn.
func (q *QP) waitRNR(now Time, psn wire.PSN, code uint8) {
	r := &q.req
	if r.rnrWait {
		return
	}
	if r.rnrRetry == 0 {
		q.count.Inc(counter.RNRRetryExceeded)
		q.fail(now, StatusRNRRetryExc)
		return
	}
	if r.rnrRetry != rnrRetryForever {
		r.rnrRetry--
	}
	q.goBack(psn)
	if q.sel != nil {
		q.sel.kept.remove(psn)
		q.sel.beginRound(r.sentTop)
	}
	r.rnrWait, r.rnrAt, r.ackAt = true, now+Time(wire.RNRTimerNanos(code)), 0
	q.stalled = false
}

// rnrRetryForever is the RNR_RETRY that never runs out (IBA 9.7.5.2.8).
const rnrRetryForever = 7

// awaited reports whether a response with data is the next one that is awaited.
// What lies between was lost and is asked for again.
func (q *QP) awaited(now Time, p *wire.Packet) bool {
	if q.answered(now, p.BTH.PSN) {
		return true
	}
	q.drop(p, stepResponse)
	return false
}

// handleData takes the answer to a READ, an atomic or their like, and then those
// that waited for it.
func (q *QP) handleData(now Time, p *wire.Packet) {
	// Where early packets may wait, this one does.
	if (q.sel != nil && q.holdResponse(now, p)) || !q.awaited(now, p) {
		return
	}
	for p != nil {
		if p.Spec.Is(wire.ClassAtomic) {
			q.takeAtomicAck(now, p)
		} else {
			q.takeReadResponse(now, p)
		}
		if q.sel == nil || q.State() == StateErr {
			return
		}
		p = q.nextHeldResponse(now)
	}
}

// badResponse ends the QP because the peer answered what was not asked.
func (q *QP) badResponse(now Time) {
	q.lastDrop = stepResponse
	q.count.Inc(counter.BadResponse)
	q.fail(now, StatusBadRespErr)
}
