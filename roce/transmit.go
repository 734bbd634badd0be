package roce

import "xroce/roce/verbs"

// This file decides which packet of the send queue goes next.

// nextRequest writes the next request packet, if one may go now.
func (r *requester) nextRequest(now Time, frame []byte) int {
	if r.alive.state == keepaliveDue {
		if n := r.putProbe(now, frame); n > 0 {
			return n
		}
	}
	if r.rnrWait || r.stalled || !r.State().Sends() {
		return 0
	}
	if r.alive.state == smallDue {
		return r.putSmall(now, frame)
	}
	if r.psn != r.sentTop {
		r.recovery.skip()
	}
	if r.cur == r.new && !r.begin(now) {
		return r.ask(now, frame)
	}
	w := r.sq.At(r.cur)
	if r.ahead(r.psn) >= r.window || (r.failed && r.cur == r.failAt) ||
		(r.psn != r.una && r.credit.exceeded(w)) {
		return r.ask(now, frame)
	}
	if r.paced = r.pace.Early(now); r.paced {
		return 0
	}
	psn, first := r.psn, r.psn == r.sentTop
	n := r.putWork(now, w, frame)
	if n == 0 {
		return r.ask(now, frame)
	}
	r.transport.sent(w, !first)
	r.pace.Spend(now, n)
	if r.congestion != nil {
		r.congestion.time(now, psn, first, r.sinceAck == 0)
		r.left(now, n)
	}
	if !r.typ.Reliable() {
		r.forgetSent(now)
	} else if r.ackAt == 0 || (psn == r.una || r.pace.Limited()) && !r.recovery.probing() {
		// What is sent again may have waited for its turn since that was decided. At
		// a low rate the rest of the message may take longer than the timer. A probe
		// must not put the timer off: else a peer that is gone would never
		// be found out.
		r.startAckTimer(now)
	}
	r.recovery.sent(now, psn, w, first)
	return n
}

// ask sends the newest packet again, with AckReq, when the requester has to wait though
// that one counted on another to ask: without an answer what was sent would not
// complete, and its timer would find a peer silent that owes nothing. No retry is used
// for it.
func (r *requester) ask(now Time, frame []byte) int {
	for r.State().Sends() {
		end, is := r.unasked()
		if !is {
			return 0
		}
		if r.paced = r.pace.Early(now); r.paced {
			return 0
		}
		psn, cur, stalls := r.psn, r.cur, r.stalls
		r.psn = end.Sub(1)
		r.cur = r.entryOf(r.psn)
		w := r.sq.At(r.cur)
		r.sinceAck = ackEvery // so this one asks
		n := r.putWork(now, w, frame)
		if n > 0 {
			r.stalls = stalls
			r.transport.sent(w, true)
			r.pace.Spend(now, n)
			r.left(now, n)
			r.startAckTimer(now)
			r.recovery.sent(now, end.Sub(1), w, false)
			return n
		}
		if !r.failed || r.failAt != r.cur {
			r.psn, r.cur = psn, cur // it waits for a page, too
			return 0
		}
	}
	return 0 // that one cannot be sent was the end
}

// putWork writes the packet psn of a work request, 0 when it cannot be.
func (r *requester) putWork(now Time, w *sendWQE, frame []byte) int {
	switch op := w.opcode.Op(); {
	case r.typ.Datagram():
		return r.putDatagram(now, w, frame)
	case r.typ == TypeRawPacket:
		return r.putRaw(now, w, frame)
	case w.opcode == OpRead:
		return r.putReadRequest(w, frame)
	case op.Reply == verbs.ReplyAtomic:
		return r.putAtomic(w, frame)
	case w.opcode == OpFlush:
		return r.putFlush(w, frame)
	default:
		return r.putRequest(now, w, frame)
	}
}

// forgetSent ends what was sent on a service without acknowledgements.
func (r *requester) forgetSent(now Time) {
	r.una = r.psn
	if r.cur != r.sq.Head() {
		r.completeSend(now, r.sq.At(r.sq.Head()), 0)
	}
}
