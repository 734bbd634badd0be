package trial

import (
	"fmt"

	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// String names the end in messages.
func (e *endpoint) String() string {
	return fmt.Sprintf("conn %d.%d end %d (node %d)", e.conn.index, e.conn.lives, e.side,
		e.node.index)
}

// sendDone takes a completion of the send queue: requests complete in order,
// each once, only unsignaled ones in silence and only with success.
func (e *endpoint) sendDone(wc *roce.Completion) {
	for len(e.sends) > 0 && e.sends[0].id != wc.WRID && !e.mustComplete(e.sends[0]) {
		e.retire()
	}
	if len(e.sends) == 0 || e.sends[0].id != wc.WRID {
		if e.overran {
			e.skipTo(wc.WRID)
		}
		if len(e.sends) == 0 || e.sends[0].id != wc.WRID {
			e.w.fail(Completion, "%s: request %d completes, outstanding are %s", e, wc.WRID,
				e.outstanding())
			return
		}
	}
	o := e.sends[0]
	if wc.Status != roce.StatusSuccess {
		e.sends = e.sends[1:]
		e.failed = append(e.failed, o)
		if wc.Opcode != o.done {
			e.w.fail(Completion, "%s: %s %d fails as %s", e, o.name, o.id, wc.Opcode)
		}
		e.sendFailed(o, wc.Status)
		return
	}
	switch {
	case e.sendStatus != 0:
		e.w.fail(Status, "%s: request %d completes with success after %s", e, o.id, e.sendStatus)
	case !e.mustComplete(o):
		e.w.fail(Completion, "%s: a completion of the unsignaled request %d", e, o.id)
	case wc.Opcode != o.done || o.gets && wc.ByteLen != uint32(o.size):
		e.w.fail(Completion, "%s: %s %d of %d bytes completes as %s of %d bytes", e, o.name, o.id,
			o.size, wc.Opcode, wc.ByteLen)
	default:
		e.retire()
	}
}

// mustComplete reports whether a request makes a completion when it succeeds.
func (e *endpoint) mustComplete(o *op) bool { return o.signaled || e.conn.config.SignalAll }

// skipTo passes over requests whose completions a CQ lost.
func (e *endpoint) skipTo(id uint64) {
	for len(e.sends) > 0 && e.sends[0].id != id {
		e.failed = append(e.failed, e.sends[0])
		e.sends = e.sends[1:]
	}
}

// outstanding lists requests for a message.
func (e *endpoint) outstanding() string {
	s := ""
	for i, o := range e.sends {
		if i == 4 {
			return s + fmt.Sprintf("and %d more", len(e.sends)-i)
		}
		s += fmt.Sprintf("%s %d, ", o.name, o.id)
	}
	return s
}

// retire ends the oldest request with success.
func (e *endpoint) retire() {
	o := e.sends[0]
	e.sends = e.sends[1:]
	o.complete = true
	if o.bad != fine {
		e.w.fail(Status, "%s: %s %d with %s succeeded", e, o.name, o.id, o.bad)
		return
	}
	e.w.stats.Messages++
	e.w.stats.Bytes += uint64(o.size)
	e.w.stats.Ops[o.row()]++
	retired := o.retired
	if e.unreliable() {
		retired = releaseSource // what became of it at the peer is not known
	}
	if wrong := retired(e, o); wrong != "" {
		kind := Memory
		if o.gets {
			kind = Read
		}
		e.w.fail(kind, "%s: after %s %d of %d bytes: %s", e, o.name, o.id, o.size, wrong)
	}
}

// retireSilent ends unsignaled requests that the device was done with before the
// CQ was found empty: a signaled one among them lost its completion.
func (e *endpoint) retireSilent() {
	if e.destroyed || e.overran {
		return
	}
	for len(e.sends) > e.undone {
		if o := e.sends[0]; e.mustComplete(o) {
			e.w.fail(Completion, "%s: %s %d is done and made no completion", e, o.name, o.id)
			return
		}
		e.retire()
	}
}

// sendFailed judges an error in the send queue: the first needs a cause, and
// all that follow are flushed.
func (e *endpoint) sendFailed(o *op, status roce.Status) {
	e.w.stats.Errors[status]++
	first := e.sendStatus == 0
	if first {
		e.sendStatus = status
		e.conn.broken(fmt.Sprintf("end %d: %s", e.side, status))
	}
	switch {
	case e.qp.State() != roce.StateErr && !e.destroyed &&
		!(e.unreliable() && e.qp.State() == roce.StateSQE):
		e.w.fail(Status, "%s: %s %d: %s, and the queue pair is in %s", e, o.name, o.id, status,
			e.qp.State())
	case first:
		if why := e.excuse(o, status); why != "" {
			e.w.fail(Status, "%s: %s %d: %s, but %s", e, o.name, o.id, status, why)
		}
	case status != roce.StatusWRFlushErr:
		e.w.fail(Status, "%s: %s %d: %s after %s", e, o.name, o.id, status, e.sendStatus)
	}
}

// excuse judges the first error of a send queue by its cause. It returns what is
// missing, "" when the status is right.
func (e *endpoint) excuse(o *op, status roce.Status) string {
	p, k := e.peer, e.conn.config
	switch status {
	case roce.StatusWRFlushErr:
		return "" // whoever moved it to ERR must say so: see checkCause
	case roce.StatusLocProtErr:
		if o.bad.local() || e.deregistered() {
			e.excused = "its own memory"
			return ""
		}
		return "its memory was good"
	}
	if o.own {
		if e.deregistered() && (status == roce.StatusMWBindErr || status == roce.StatusLocQPOpErr) {
			e.excused = "its own memory"
			return ""
		}
		return "its key was good"
	}
	if e.unreliable() {
		return "nobody answers on a connection of this type"
	}
	switch status {
	case roce.StatusRetryExcErr:
		e.excused = "retries"
		// A loss may cost two tries, by a timeout and a NAK that cross, also one
		// from before the last progress.
		failures := uint64(k.RetryCnt) + 1
		// What tells of a loss costs one between two timeouts, or after an RNR NAK.
		least := roce.Time(failures/2) * ackTimeout(k.Timeout)
		if e.diedAfter < least && !e.diedRefused {
			return fmt.Sprintf("it had tried for %s, want %s at least",
				campaign.ClockTime(e.diedAfter), campaign.ClockTime(least))
		}
		switch gone := p.dead && p.diedAt <= e.diedAt || p.qp == nil; {
		case gone, e.diedLate, 2*e.diedHarm+2 >= failures && 2*e.harm >= failures:
			return ""
		}
		return fmt.Sprintf("only %d frames suffered since it got on, %d in all, and the peer lives",
			e.diedHarm, e.harm)
	case roce.StatusRNRRetryExc:
		e.excused = "RNR retries"
		if k.RNRRetry == 7 {
			return "it may retry for ever"
		}
		if o.consumes && p.notReady > int(k.RNRRetry) {
			return ""
		}
		return fmt.Sprintf("the peer sent only %d RNR NAKs", p.notReady)
	}
	gone := (o.remote || o.key32 != 0) && p.deregistered() || p.ticket.wasRevoked(o)
	// A READ that is repeated because its response was lost finds its key gone: the peer says so,
	// and goes on, because another response would not have been lost.
	repeated := status == roce.StatusRemAccessErr && o.code == roce.OpRead && gone && e.harm > 0
	if !p.dead && !repeated {
		return "the peer's queue pair lives"
	}
	e.excused = "the peer refused"
	switch {
	case status == roce.StatusRemAccessErr && (o.bad != fine && !o.bad.local() || gone):
	case status == roce.StatusRemInvReqErr && o.consumes && p.shortest() < o.size:
	case status == roce.StatusRemOpErr && o.consumes && p.deregistered():
	default:
		return "nothing was wrong with it"
	}
	return ""
}

// receiveDone takes a completion of the receive queue.
func (e *endpoint) receiveDone(wc *roce.Completion) {
	r := e.takeReceive(wc)
	if r == nil {
		return
	}
	if wc.Status != roce.StatusSuccess {
		e.failedRecvs = append(e.failedRecvs, r)
		if wc.Opcode != roce.WCRecv {
			e.w.fail(Completion, "%s: receive %d fails as %s", e, r.id&^receiveID, wc.Opcode)
		}
		e.receiveFailed(r, wc.Status)
		return
	}
	switch {
	case e.recvStatus != 0:
		e.w.fail(Status, "%s: a message arrives after %s", e, e.recvStatus)
	case e.overran:
		e.failedRecvs = append(e.failedRecvs, r)
	case len(e.expect) == 0 && !e.shuffled:
		e.w.fail(Delivery, "%s: a message of %d bytes that nobody sent", e, wc.ByteLen)
	default:
		e.arrive(r, wc)
	}
}

// takeReceive finds the receive of a completion, nil when it must not complete.
func (e *endpoint) takeReceive(wc *roce.Completion) *receive {
	if e.shared != nil {
		r, wrong := e.shared.take(wc.WRID)
		if wrong != "" {
			e.w.fail(Completion, "%s: %s", e, wrong)
		}
		return r
	}
	for e.overran && len(e.recvs) > 0 && e.recvs[0].id != wc.WRID {
		e.failedRecvs = append(e.failedRecvs, e.recvs[0])
		e.recvs = e.recvs[1:]
	}
	if len(e.recvs) == 0 || e.recvs[0].id != wc.WRID {
		e.w.fail(Completion, "%s: receive %d completes out of order, %d outstanding", e,
			wc.WRID&^receiveID, len(e.recvs))
		return nil
	}
	r := e.recvs[0]
	e.recvs = e.recvs[1:]
	return r
}

// shortest is the size of the shortest receive that was posted.
func (e *endpoint) shortest() int {
	if e.shared != nil {
		return e.shared.smallest
	}
	return e.smallest
}

// arrive takes the message that must be next.
func (e *endpoint) arrive(r *receive, wc *roce.Completion) {
	var o *op
	if e.unreliable() {
		if o = e.nextUnreliable(r, wc); o == nil {
			e.w.fail(Delivery, "%s: a message of %d bytes that is none of those to come: %+v", e,
				wc.ByteLen, *wc)
			return
		}
	} else {
		o = e.expect[0]
		e.expect = e.expect[1:]
	}
	o.received = true
	want := roce.Completion{
		WRID: r.id, Opcode: o.arrival, QPN: e.info.QPN, ByteLen: uint32(o.size), Time: wc.Time,
	}
	if o.imm {
		want.Flags, want.Imm = roce.WCWithImm, o.value
	}
	if o.key32 != 0 {
		want.Flags, want.InvalidatedKey = roce.WCWithInv, o.key32
	}
	if *wc != want {
		e.w.fail(Delivery, "%s: %s %d completes a receive as %+v, want %+v", e, o.name, o.id, *wc,
			want)
		return
	}
	if o.bad != fine || o.afterwards {
		e.w.fail(Status, "%s: %s %d with %s arrived", e, o.name, o.id, o.bad)
		return
	}
	e.w.stats.Arrivals++
	wrong := ""
	if e.unreliable() {
		wrong = e.arriveUnreliable(o, r)
	} else {
		wrong = o.arrived(e, o, r)
	}
	if wrong != "" {
		e.w.fail(Memory, "%s: after %s %d of %d bytes arrived: %s", e, o.name, o.id, o.size, wrong)
		return
	}
	r.slot.taken = false
	if e.shared == nil {
		e.rested(r.slot)
	} else {
		r.arena.scramble(r.slot)
	}
}

// receiveFailed judges an error in the receive queue.
func (e *endpoint) receiveFailed(r *receive, status roce.Status) {
	e.w.stats.Errors[status]++
	first := e.recvStatus == 0
	if first {
		e.recvStatus = status
		e.conn.broken(fmt.Sprintf("end %d: receive: %s", e.side, status))
	}
	right := status == roce.StatusWRFlushErr
	switch {
	case right || !first:
	case status == roce.StatusLocLenErr && !e.unreliable():
		right = len(e.expect) > 0 && e.expect[0].size > r.size
		e.excused = "a receive was too small"
	case status == roce.StatusLocProtErr:
		right = e.deregistered()
	case status == roce.StatusLocAccessErr, status == roce.StatusRemInvReqErr:
		right = e.peer.doomed || e.deregistered() || len(e.ticket.revoked) > 0
		e.excused = "the peer was refused"
	}
	if !right {
		e.w.fail(Status, "%s: receive %d: %s after %s", e, r.id&^receiveID, status, e.recvStatus)
	}
}

// checkCause wants a reason for a queue pair that went to ERR.
func (e *endpoint) checkCause() {
	if !e.dead || e.excused != "" || e.peer.doomed || e.deregistered() ||
		len(e.ticket.revoked) > 0 {
		return
	}
	e.w.fail(Status, "%s: went to ERR for no reason, send queue %s, receive queue %s", e,
		e.sendStatus, e.recvStatus)
}
