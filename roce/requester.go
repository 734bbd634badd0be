package roce

import (
	"xroce/roce/cc"
	"xroce/roce/clock"
	"xroce/roce/counter"
	"xroce/roce/mem"
	"xroce/roce/queue"
	"xroce/roce/recovery"
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
	*transport
	requestState
	recovery   lossRecovery
	sq         queue.WorkQueue[sendWQE]
	sendCQ     *CQ
	configured uint32 // the window of QPConfig
	sigAll     bool
	portMTU    wire.MTU
}

// requestState is what RESET forgets of a requester.
type requestState struct {
	psn wire.PSN // the next PSN to send
	max wire.PSN // the first PSN that no begun work request has
	una wire.PSN // the oldest PSN without an answer
	cur uint32   // send queue entry that psn belongs to; new when psn == max
	new uint32   // the first send queue entry that is not begun

	window  uint32 // limit of psn - una for SEND and WRITE packets
	sentTop wire.PSN
	out     uint32 // READs, atomics and their like begun and not complete
	credit  credit
	pace    cc.Pacer

	rnrAt    Time  // end of the wait after an RNR NAK, or for a page
	ackAt    Time  // when the local ACK timer expires, 0 when it is off
	retry    uint8 // left of RETRY_CNT
	rnrRetry uint8 // left of RNR_RETRY
	excused  uint8 // how often ackAt was put off; see Excuse
	sinceAck uint8 // packets since the last one that asked for an ACK
	rnrWait  bool
	paced    bool // a request waits for the rate limit

	// stalled says that no request is sent until rnrAt, for want of a page here; stalls
	// is how often in a row.
	stalled bool
	stalls  uint8

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

// init makes the send queue that a new QP is to have.
func (r *requester) init(t *transport, c *QPConfig) error {
	window := uint32(c.Window)
	if window == 0 {
		window = defaultWindow
	}
	r.transport, r.sendCQ, r.sigAll, r.portMTU = t, c.SendCQ, c.SignalAll, c.MTU
	if r.portMTU == 0 {
		r.portMTU = wire.MTU4096
	}
	r.configured, r.window = window, window
	r.recovery = goBackN{r}
	if !c.Type.HasSend() {
		return nil
	}
	return r.sq.Init("send queue", c.MaxSendWR, c.MaxSendSGE, c.MaxInline)
}

// extend chooses how losses are recovered from.
func (r *requester) extend(e Extensions, pool *recovery.Pool) {
	r.recovery.stop()
	r.recovery, r.window = goBackN{r}, r.configured
	if e != 0 {
		r.recovery = newSelectiveRepeat(r, e, pool)
		r.window = min(r.configured, recovery.Span)
	}
}

// restart begins a connection at a PSN.
func (r *requester) restart(psn wire.PSN) {
	r.jump(psn)
	r.recovery.restart(psn)
}

// jump moves to a PSN before which nothing is under way.
func (r *requester) jump(psn wire.PSN) { r.psn, r.max, r.una, r.sentTop = psn, psn, psn, psn }

// stop turns the timers off, and gives back what waits.
func (r *requester) stop() {
	r.rnrWait, r.ackAt, r.failed, r.out = false, 0, false, 0
	r.paced, r.stalled = false, false
	r.recovery.stop()
}

// reset forgets all work and the connection, without completions.
func (r *requester) reset() {
	r.recovery.stop()
	r.recovery = goBackN{r}
	r.sq.Clear()
	head := r.sq.Head()
	r.requestState = requestState{window: r.configured, cur: head, new: head}
}

// ahead is how far p lies ahead of una.
func (r *requester) ahead(p wire.PSN) uint32 { return uint32(p.Sub(uint32(r.una))) }

// nextRequest writes the next request packet, if one may go now.
func (r *requester) nextRequest(now Time, frame []byte) int {
	if r.rnrWait || r.stalled || !r.State().Sends() {
		return 0
	}
	r.recovery.skip()
	if r.cur == r.new && !r.begin(now) {
		return 0
	}
	w := r.sq.At(r.cur)
	if r.ahead(r.psn) >= r.window || (r.failed && r.cur == r.failAt) ||
		(r.psn != r.una && r.credit.short(w)) {
		return 0
	}
	if r.paced = r.pace.Early(now); r.paced {
		return 0
	}
	psn, first := r.psn, r.psn == r.sentTop
	n := r.putWork(now, w, frame)
	if n == 0 {
		return 0
	}
	r.pace.Spend(now, n)
	if !r.typ.Reliable() {
		r.forgetSent(now)
	} else if r.ackAt == 0 || (psn == r.una || r.pace.Limited()) && !r.recovery.probing() {
		// What is sent again may have waited for its turn since that was decided. At
		// a low rate the rest of the message may take longer than the timer. A probe
		// must not put the timer off: a peer that is gone answers none.
		r.startAckTimer(now)
	}
	r.recovery.sent(now, psn, w, first)
	return n
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

// begin starts with the next posted work request, if it may start now.
func (r *requester) begin(now Time) bool {
	for {
		if r.new == r.sq.Tail() || r.failed || r.State() != StateRTS ||
			r.ahead(r.max) >= r.window {
			return false
		}
		w := r.sq.At(r.new)
		op := w.opcode.Op()
		if op.Reply != verbs.ReplyNone && !r.tooLong(w) {
			return r.mayBegin(now, w, op) && r.beginAt(now, w, op)
		}
		// Work that is done here waits for everything before it.
		if r.new != r.sq.Head() {
			return false
		}
		if status := r.workLocally(w); status != StatusSuccess {
			r.failRequest(now, r.new, status)
			return false
		}
		r.new++
		r.cur = r.new
		r.completeSend(now, w, 0)
	}
}

// mayBegin reports whether limits and order let a work request begin now.
func (r *requester) mayBegin(now Time, w *sendWQE, op *verbs.Op) bool {
	if w.flags&SendFence != 0 {
		if r.out > 0 {
			return false
		}
		r.sendCQ.FlushInline() // it may send what was read
	}
	if op.Count {
		if r.attr.MaxRdAtomic == 0 {
			// It was posted before the attribute was taken down, and would
			// wait for ever.
			r.failRequest(now, r.new, StatusLocQPOpErr)
			return false
		}
		// What answers out of turn must find room. A request that is alone has none
		// before it to overtake.
		span := goBackN{}.span()
		if r.max != r.una {
			span = r.recovery.span()
		}
		if r.out >= uint32(r.attr.MaxRdAtomic) || r.ahead(r.max)+r.packets(w) > span {
			return false
		}
	}
	// Beyond the peer's credits one message at a time goes, as a question.
	return !op.Notify || r.una == r.max || r.credit.covers(r.credit.ssn+1)
}

// beginAt gives a work request its PSNs, if its memory is as it should be.
func (r *requester) beginAt(now Time, w *sendWQE, op *verbs.Op) bool {
	if w.flags&SendInline == 0 {
		w.since = r.keys.Epoch()
		switch r.mayAccess(w, op) {
		case mem.OK:
		case mem.FaultPage:
			r.stall(now)
			return false
		default:
			r.failRequest(now, r.new, StatusLocProtErr)
			return false
		}
	}
	w.first, w.last = r.max, r.max.Add(r.packets(w)-1)
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
func (r *requester) mayAccess(w *sendWQE, op *verbs.Op) mem.Fault {
	list := r.sq.SGList(r.new, int(w.numSGE))
	if op.Write {
		return r.ready(r.own(w), list)
	}
	for i := range list {
		s := &list[i]
		if s.Length == 0 {
			continue
		}
		if f := r.keys.Check(r.own(w), s.LKey, s.Addr, int(s.Length), 0); f != mem.OK {
			return f
		}
	}
	return mem.OK
}

// oldest is the work request that una belongs to, if any is begun.
func (r *requester) oldest() *sendWQE { return r.sq.At(r.sq.Head()) }

// own is on whose behalf a work request accesses memory.
func (r *requester) own(w *sendWQE) mem.Accessor {
	return mem.Accessor{Domain: r.domain, Since: w.since}
}

// packets is how many PSNs a work request takes.
func (r *requester) packets(w *sendWQE) uint32 {
	if w.opcode.Op().Word || r.pmtu == 0 {
		return 1 // of a datagram too, which has no path MTU
	}
	return max(1, (w.length+r.pmtu-1)/r.pmtu)
}

// workLocally does what needs no packet.
func (r *requester) workLocally(w *sendWQE) Status {
	if r.typ.Datagram() {
		r.count.Inc(counter.DatagramTooLong)
		return StatusSuccess
	}
	switch w.opcode {
	case OpBindMW:
		return r.bind(w)
	case OpUMR:
		return r.configure(w)
	}
	if r.keys.Invalidate(r.domain.Local(), w.imm) != mem.OK {
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
func (r *requester) wantsAck(now Time, last bool) bool {
	if !r.typ.Reliable() {
		return false
	}
	r.sinceAck++
	ack := uint32(r.sinceAck) >= min(ackEvery, r.window/2) || r.ahead(r.psn)+1 >= r.window
	if !ack {
		again := r.ahead(r.psn) < r.ahead(r.sentTop)
		switch {
		case again && r.recovery.selective():
			ack = true
		case last:
			ack = again || !r.nextFollows(now)
		default:
			ack = r.credit.short(r.sq.At(r.cur))
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
func (r *requester) nextFollows(now Time) bool {
	next := r.cur + 1
	return (next != r.new || r.begin(now)) && !(r.failed && r.failAt == next)
}

// startAckTimer starts the local ACK timer from now, or from when the next packet
// may go: until then the peer has nothing to answer.
func (r *requester) startAckTimer(now Time) {
	r.ackAt, r.excused = 0, 0
	if t := ackTimeout(r.attr.Timeout); t != 0 {
		r.ackAt = r.pace.Next(now) + t
	}
}

// goBack makes p, which is answered up to but not including it, the next PSN
// to send.
func (r *requester) goBack(p wire.PSN) {
	i := r.sq.Head()
	for i != r.new && r.ahead(r.sq.At(i).last) < r.ahead(p) {
		i++
	}
	r.psn, r.cur, r.sinceAck = p, i, 0
}

// deadline returns when handleDeadline wants to be called, 0 for never.
func (r *requester) deadline() Time {
	at := r.ackAt
	if r.rnrWait {
		at = r.rnrAt
	} else if r.stalled {
		at = clock.Sooner(at, r.rnrAt)
	}
	if r.paced {
		at = clock.Sooner(at, r.pace.Due())
	}
	return clock.Sooner(at, r.recovery.deadline())
}

// handleDeadline acts on the requester's timers.
func (r *requester) handleDeadline(now Time) {
	if now >= r.pace.Due() {
		r.paced = false // next waits again if need be
	}
	r.requestDeadline(now)
	r.recovery.handleDeadline(now)
}

// requestDeadline acts on the timers of what the peer is to answer.
func (r *requester) requestDeadline(now Time) {
	if r.stalled && now >= r.rnrAt {
		r.stalled = false
	}
	switch {
	case r.rnrWait && now >= r.rnrAt:
		r.rnrWait = false
	case r.ackOverdue(now):
		r.count.Inc(counter.LocalAckTimeout)
		r.retried = false
		r.recovery.timedOut(now)
	}
}

// retryFrom sends everything from p on again, or fails the oldest work request
// when RETRY_CNT is used up.
func (r *requester) retryFrom(now Time, p wire.PSN) {
	if r.takeRetry(now) {
		r.recovery.wentBack()
		r.sendFrom(now, p)
	}
}

// takeRetry takes one of RETRY_CNT, or fails the oldest work request and reports false
// when they are used up.
func (r *requester) takeRetry(now Time) bool {
	if r.retry == 0 {
		r.count.Inc(counter.RetryExceeded)
		r.fail(now, StatusRetryExcErr)
		return false
	}
	r.retry--
	r.resent = true
	return true
}

// sendFrom makes p the next PSN to send, and gives the peer time to answer anew.
func (r *requester) sendFrom(now Time, p wire.PSN) {
	r.goBack(p)
	r.startAckTimer(now)
}

// failRequest marks a work request as one that cannot be sent. Those before it
// end first, each as it does.
func (r *requester) failRequest(now Time, at uint32, status Status) {
	r.count.Inc(counter.SendErr)
	r.failed, r.failAt, r.failStatus = true, at, status
	r.failWhenOldest(now)
}

// failWhenOldest fails the marked work request once it is the oldest. When it
// could not be sent again but had arrived the first time, it is complete by now
// and there is nothing to fail.
func (r *requester) failWhenOldest(now Time) {
	if !r.failed {
		return
	}
	switch past := int32(r.sq.Head() - r.failAt); {
	case past == 0:
		r.fail(now, r.failStatus)
	case past > 0:
		r.failed = false
	}
}

// fail completes the oldest work request with a status and ends the QP.
func (r *requester) fail(now Time, status Status) {
	i := r.sq.Head()
	wc := Completion{WRID: r.sq.At(i).wrID, Status: status, Time: now}
	r.sq.Pop()
	r.complete(r.sendCQ, &wc, true)
	if r.typ.Reliable() {
		r.stop()
		r.enterError()
	} else {
		r.enterSQE(now)
	}
}

// enterSQE stops the send queue of an unreliable QP after a local error; the
// receive queue keeps running (IBA 10.3.1.6).
func (r *requester) enterSQE(now Time) {
	if r.State() != StateErr {
		r.setState(StateSQE)
		r.stop()
		r.jump(r.psn) // the next message begins where this one ended
		r.flush(now)
	}
}

// flush completes all sends with a flush error.
func (r *requester) flush(now Time) {
	for i := r.sq.Head(); i != r.sq.Tail(); i++ {
		wc := Completion{WRID: r.sq.At(i).wrID, Status: StatusWRFlushErr, Time: now}
		r.sq.Pop()
		r.complete(r.sendCQ, &wc, true)
	}
	r.cur, r.new = r.sq.Head(), r.sq.Head()
}

// draining reports whether what was begun is not finished, in SQD.
func (r *requester) draining() bool { return r.sq.Head() != r.new }
