package roce

import "xroce/roce/counter"

// This file is about work requests of the send queue that end without success.

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

// fail completes the oldest work request with a status and ends the QP. The state
// changes first: who sees the completion finds the QP in ERR, or in SQE.
func (r *requester) fail(now Time, status Status) {
	wc := r.failure(r.sq.At(r.sq.Head()), status, now)
	if r.typ.Reliable() {
		r.enterError()
		r.stop()
	} else {
		r.enterSQE()
		r.halt()
	}
	r.sq.Pop()
	r.complete(r.sendCQ, &wc, true)
	if r.State() == StateSQE {
		r.flush(now)
	}
}

// failure is the completion of a work request that failed.
func (r *requester) failure(w *sendWQE, status Status, now Time) Completion {
	w.umr = nil // the queue is not to keep what the layout describes
	return Completion{
		WRID: w.wrID, Status: status, Opcode: w.opcode.Op().WC, VendorErr: r.vendorErr(status),
		Time: now,
	}
}

// vendorErr is what is known of a work request beside its status.
func (r *requester) vendorErr(status Status) VendorErr {
	if status == StatusRetryExcErr && r.alive.state == smallAnswered {
		return VendorLargeLost
	}
	return 0
}

// enterSQE stops the send queue of an unreliable QP after a local error; the
// receive queue keeps running (IBA 10.3.1.6).
func (r *requester) enterSQE() {
	if r.State() != StateErr {
		r.setState(StateSQE)
		r.jump(r.psn) // the next message begins where this one ended
	}
}

// flush completes all sends with a flush error.
func (r *requester) flush(now Time) {
	for i := r.sq.Head(); i != r.sq.Tail(); i++ {
		wc := r.failure(r.sq.At(i), StatusWRFlushErr, now)
		r.sq.Pop()
		r.complete(r.sendCQ, &wc, true)
	}
	r.cur, r.new = r.sq.Head(), r.sq.Head()
}
