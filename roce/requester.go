package roce

import (
	"xroce/roce/cc"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// The requester turns work requests into request packets.
//
//	            head          cur           new           tail
//	send queue   | unacknowledged | to send again | not begun |
//	PSNs        una             psn             max
//
// A work request is begun when its first packet can go: it then gets its PSNs,
// max moves behind them, and whatever happens later, the same PSN always
// carries the same bytes. To send again is to move psn and cur back. On a
// service without acknowledgements a work request is complete when its last
// packet is written, and una follows psn.
type requester struct {
	psn wire.PSN // the next PSN to send
	max wire.PSN // the first PSN that no begun work request has
	una wire.PSN // the oldest PSN without an answer
	cur uint32   // send queue entry that psn belongs to; new when psn == max
	new uint32   // the first send queue entry that is not begun

	window     uint32 // limit of psn - una for SEND and WRITE packets
	configured uint32 // the window of QPConfig
	sentTop    wire.PSN
	out        uint32 // READs, atomics and their like begun and not complete
	credit     credit
	pace       cc.Pacer

	rnrAt    Time  // end of the wait after an RNR NAK, or for a page
	ackAt    Time  // when the local ACK timer expires, 0 when it is off
	retry    uint8 // left of RETRY_CNT
	rnrRetry uint8 // left of RNR_RETRY
	excused  uint8 // how often ackAt was put off; see Excuse
	sinceAck uint8 // packets since the last one that asked for an ACK
	rnrWait  bool
	paced    bool // a request waits for the rate limit

	// retried says that everything from una on was sent again for a NAK and
	// nothing was acknowledged since: more NAKs for the same loss are old.
	retried bool
	// resent says the same of any reason: that a READ has no data yet, though the
	// peer answers what lies behind it, is no news then.
	resent bool
	// failed says that entry failAt cannot be sent, or not to its end. It
	// completes with failStatus when all before it have completed.
	failed     bool
	failStatus Status
	failAt     uint32
}

// restart begins a connection at a PSN.
func (r *requester) restart(psn wire.PSN) {
	r.psn, r.max, r.una, r.sentTop = psn, psn, psn, psn
}

// cut gives up what was begun on a service without acknowledgements: the next
// message begins where it ended.
func (r *requester) cut() { r.restart(r.psn) }

// stop turns the timers off.
func (r *requester) stop() {
	r.rnrWait, r.ackAt, r.failed, r.out = false, 0, false, 0
	r.paced = false
}

// ahead is how far p lies ahead of una.
func (r *requester) ahead(p wire.PSN) uint32 { return uint32(p.Sub(uint32(r.una))) }

// nextRequest writes the next request packet, if one may go now.
func (q *QP) nextRequest(now Time, frame []byte) int {
	r := &q.req
	if r.rnrWait || q.stalled || !q.State().Sends() {
		return 0
	}
	if q.sel != nil {
		q.skipKept()
	}
	if r.cur == r.new && !q.begin(now) {
		return 0
	}
	w := q.sq.At(r.cur)
	if r.ahead(r.psn) >= r.window || (r.failed && r.cur == r.failAt) ||
		(r.psn != r.una && r.credit.short(w)) {
		return 0
	}
	if r.paced = r.pace.Early(now); r.paced {
		return 0
	}
	psn, first := r.psn, r.psn == r.sentTop
	n := q.putWork(now, w, frame)
	if n == 0 {
		return 0
	}
	r.pace.Spend(now, n)
	if !q.typ.Reliable() {
		q.forgetSent(now)
	} else if r.ackAt == 0 || (psn == r.una || r.pace.Limited()) && !q.probing() {
		// What is sent again may have waited for its turn since that was decided. At
		// a low rate the rest of the message may take longer than the timer. A probe
		// must not put the timer off: a peer that is gone answers none.
		q.startAckTimer(now)
	}
	if q.sel != nil {
		q.followSent(now, psn, w, first)
	}
	return n
}

// putWork writes the packet psn of a work request, 0 when it cannot be.
func (q *QP) putWork(now Time, w *sendWQE, frame []byte) int {
	switch op := w.opcode.Op(); {
	case q.typ.Datagram():
		return q.putDatagram(now, w, frame)
	case q.typ == TypeRawPacket:
		return q.putRaw(now, w, frame)
	case w.opcode == OpRead:
		return q.putReadRequest(w, frame)
	case op.Reply == verbs.ReplyAtomic:
		return q.putAtomic(w, frame)
	case w.opcode == OpFlush:
		return q.putFlush(w, frame)
	default:
		return q.putRequest(now, w, frame)
	}
}

// forgetSent ends what was sent on a service without acknowledgements.
func (q *QP) forgetSent(now Time) {
	r := &q.req
	r.una = r.psn
	if r.cur != q.sq.Head() {
		q.completeSend(now, q.sq.At(q.sq.Head()), 0)
	}
}

// begin starts with the next posted work request, if it may start now.
func (q *QP) begin(now Time) bool {
	r := &q.req
	for {
		if r.new == q.sq.Tail() || r.failed || q.State() != StateRTS ||
			r.ahead(r.max) >= r.window {
			return false
		}
		w := q.sq.At(r.new)
		op := w.opcode.Op()
		if op.Reply != verbs.ReplyNone && !q.tooLong(w) {
			return q.mayBegin(now, w, op) && q.beginAt(now, w, op)
		}
		// Work that is done here waits for everything before it.
		if r.new != q.sq.Head() {
			return false
		}
		if status := q.workLocally(w); status != StatusSuccess {
			q.failRequest(now, r.new, status)
			return false
		}
		r.new++
		r.cur = r.new
		q.completeSend(now, w, 0)
	}
}

// mayBegin reports whether limits and order let a work request begin now.
func (q *QP) mayBegin(now Time, w *sendWQE, op *verbs.Op) bool {
	r := &q.req
	if w.flags&SendFence != 0 {
		if r.out > 0 {
			return false
		}
		q.sendCQ.FlushInline() // it may send what was read
	}
	if op.Count {
		if q.attr.MaxRdAtomic == 0 {
			// It was posted before the attribute was taken down, and would
			// wait for ever.
			q.failRequest(now, r.new, StatusLocQPOpErr)
			return false
		}
		// Half of the PSN space at most may be unanswered (IBA 9.7.2), and what
		// answers out of turn must find room.
		limit := uint32(1 << 23)
		if q.sel != nil && r.max != r.una {
			limit = holdSpan
		}
		if r.out >= uint32(q.attr.MaxRdAtomic) || r.ahead(r.max)+q.packets(w) > limit {
			return false
		}
	}
	// Beyond the peer's credits one message at a time goes, as a question.
	return !op.Notify || r.una == r.max || r.credit.covers(r.credit.ssn+1)
}

// beginAt gives a work request its PSNs, if its memory is as it should be.
func (q *QP) beginAt(now Time, w *sendWQE, op *verbs.Op) bool {
	r := &q.req
	if w.flags&SendInline == 0 {
		w.since = q.keys.Epoch()
		switch q.mayAccess(w, op) {
		case mem.OK:
		case mem.FaultPage:
			q.stall(now)
			return false
		default:
			q.failRequest(now, r.new, StatusLocProtErr)
			return false
		}
	}
	w.first, w.last = r.max, r.max.Add(q.packets(w)-1)
	r.max = w.last.Add(1)
	r.new++
	r.credit.ssn = (r.credit.ssn + 1) & 0xffffff
	w.ssn = r.credit.ssn
	w.question = op.Notify && !r.credit.covers(w.ssn)
	if op.Count {
		r.out++
	}
	return true
}

// mayAccess checks the memory of the work request that is to begin. What the answer
// is written to must be present as well, or the answer would come in vain.
func (q *QP) mayAccess(w *sendWQE, op *verbs.Op) mem.Fault {
	list := q.sq.SGList(q.req.new, int(w.numSGE))
	if op.Write {
		return q.ready(q.own(w), list)
	}
	for i := range list {
		s := &list[i]
		if s.Length == 0 {
			continue
		}
		if f := q.keys.Check(q.own(w), s.LKey, s.Addr, int(s.Length), 0); f != mem.OK {
			return f
		}
	}
	return mem.OK
}

// own is on whose behalf a work request accesses memory.
func (q *QP) own(w *sendWQE) mem.Accessor {
	return mem.Accessor{Domain: q.domain, Since: w.since}
}

// packets is how many PSNs a work request takes.
func (q *QP) packets(w *sendWQE) uint32 {
	if w.opcode.Op().Word || q.pmtu == 0 {
		return 1 // of a datagram too, which has no path MTU
	}
	return max(1, (w.length+q.pmtu-1)/q.pmtu)
}

// workLocally does what needs no packet.
func (q *QP) workLocally(w *sendWQE) Status {
	if q.typ.Datagram() {
		q.count.Inc(counter.DatagramTooLong)
		return StatusSuccess
	}
	switch w.opcode {
	case OpBindMW:
		return q.bind(w)
	case OpUMR:
		return q.configure(w)
	}
	if q.keys.Invalidate(q.domain.Local(), w.imm) != mem.OK {
		return StatusLocQPOpErr
	}
	return StatusSuccess
}

// wantsAck decides whether the packet psn asks for an ACK (IBA 9.7.5.1.2). The
// choice is the requester's: the last packet of a message asks, unless the next
// message follows at once and its end will; every ackEvery-th packet asks; so
// do the packet that closes the window and, since the first try was in vain,
// the end of a message that is sent again. A packet that goes without credit is
// a question. Where only what was lost is sent again, each of those asks.
func (q *QP) wantsAck(now Time, last bool) bool {
	r := &q.req
	if !q.typ.Reliable() {
		return false
	}
	r.sinceAck++
	ack := uint32(r.sinceAck) >= min(ackEvery, r.window/2) || r.ahead(r.psn)+1 >= r.window
	if !ack {
		again := r.ahead(r.psn) < r.ahead(r.sentTop)
		switch {
		case again && q.sel != nil:
			ack = true
		case last:
			ack = again || !q.nextFollows(now)
		default:
			ack = r.credit.short(q.sq.At(r.cur))
		}
	}
	if ack {
		r.sinceAck = 0
	}
	return ack
}

// ackEvery is how many packets may pass without one that asks for an ACK. An
// answer costs both hosts as much as a request.
const ackEvery = 64

// nextFollows reports whether the work request behind cur is sure to be sent.
func (q *QP) nextFollows(now Time) bool {
	r := &q.req
	next := r.cur + 1
	return (next != r.new || q.begin(now)) && !(r.failed && r.failAt == next)
}

// startAckTimer starts the local ACK timer from now, or from when the next packet
// may go: until then the peer has nothing to answer.
func (q *QP) startAckTimer(now Time) {
	r := &q.req
	r.ackAt, r.excused = 0, 0
	if t := ackTimeout(q.attr.Timeout); t != 0 {
		r.ackAt = r.pace.Next(now) + t
	}
}

// goBack makes p, which is answered up to but not including it, the next PSN
// to send.
func (q *QP) goBack(p wire.PSN) {
	r := &q.req
	i := q.sq.Head()
	for i != r.new && r.ahead(q.sq.At(i).last) < r.ahead(p) {
		i++
	}
	r.psn, r.cur, r.sinceAck = p, i, 0
}

// requestDeadline acts on the requester's timers.
func (q *QP) requestDeadline(now Time) {
	r := &q.req
	if q.stalled && now >= r.rnrAt {
		q.stalled = false
	}
	switch {
	case r.rnrWait && now >= r.rnrAt:
		r.rnrWait = false
	case q.ackOverdue(now):
		q.count.Inc(counter.LocalAckTimeout)
		r.retried = false
		if q.sel != nil {
			q.selectiveTimeout(now)
		} else {
			q.retryFrom(now, r.una)
		}
	}
}

// retryFrom sends everything from p on again, or fails the oldest work request
// when RETRY_CNT is used up.
func (q *QP) retryFrom(now Time, p wire.PSN) {
	r := &q.req
	if r.retry == 0 {
		q.count.Inc(counter.RetryExceeded)
		q.fail(now, StatusRetryExcErr)
		return
	}
	r.retry--
	r.resent = true
	if q.sel != nil {
		q.sel.beginRound(r.sentTop)
	}
	q.goBack(p)
	q.startAckTimer(now)
}

// failRequest marks a work request as one that cannot be sent. Those before it
// end first, each as it does.
func (q *QP) failRequest(now Time, at uint32, status Status) {
	q.count.Inc(counter.SendErr)
	q.req.failed, q.req.failAt, q.req.failStatus = true, at, status
	q.failWhenOldest(now)
}

// failWhenOldest fails the marked work request once it is the oldest. When it
// could not be sent again but had arrived the first time, it is complete by now
// and there is nothing to fail.
func (q *QP) failWhenOldest(now Time) {
	r := &q.req
	if !r.failed {
		return
	}
	switch past := int32(q.sq.Head() - r.failAt); {
	case past == 0:
		q.fail(now, r.failStatus)
	case past > 0:
		r.failed = false
	}
}

// fail completes the oldest work request with a status and ends the QP.
func (q *QP) fail(now Time, status Status) {
	i := q.sq.Head()
	wc := Completion{WRID: q.sq.At(i).wrID, Status: status, Time: now}
	q.sq.Pop()
	q.complete(q.sendCQ, &wc, true)
	if q.typ.Reliable() {
		q.enterError(now)
	} else {
		q.enterSQE(now)
	}
}
