package roce

import (
	"xroce/roce/counter"
	"xroce/roce/queue"
	"xroce/roce/wire"
)

// This file ends work requests that were answered.

// acknowledge retires everything before the PSN p and reports whether p is now the
// oldest unacknowledged one. It is not when a READ before p misses its data,
// which is then requested again, or when the QP has failed.
func (r *requester) acknowledge(now Time, p wire.PSN) bool {
	if r.reach(now, p) {
		return true
	}
	if r.State() != StateErr {
		r.recovery.dataMissing(now, p)
	}
	return false
}

// reach retires what lies before a PSN, and reports whether it is now the oldest.
func (r *requester) reach(now Time, psn wire.PSN) bool {
	before := r.una
	reached := r.retire(now, psn)
	if r.una != before {
		r.progress(now)
	}
	return reached && r.State() != StateErr
}

// retire moves una to p, completing work requests, until one that
// needs a response of its own, which has not come.
func (r *requester) retire(now Time, p wire.PSN) bool {
	for r.una != p {
		w := r.oldest()
		if w.needsResponse() {
			return false
		}
		if r.ahead(w.last) >= r.ahead(p) {
			r.una = p
			return true
		}
		r.retireSome(now, p)
	}
	return true
}

// retireSome completes work requests that end before the PSN p and need no response of their
// own, as many as fit a batch. Their slots are free before one of them can be polled.
func (r *requester) retireSome(now Time, p wire.PSN) {
	done, head, n := queue.NewBatch(r.sendCQ), r.sq.Head(), uint32(0)
	for n < queue.BatchMax && r.una != p {
		w := r.sq.At(head + n)
		if w.needsResponse() || r.ahead(w.last) >= r.ahead(p) {
			break
		}
		r.una = w.last.Add(1)
		n++
		if wc := r.success(now, w, 0); r.signals(w) {
			r.deliverWith(&done, &wc)
		}
	}
	r.sq.PopN(n)
	done.End()
}

// success is the completion of a work request that ends with success, and counts it.
func (r *requester) success(now Time, w *sendWQE, byteLen uint32) Completion {
	op := w.opcode.Op()
	if op.WC == WCSend {
		r.count.Inc(counter.RDMASends)
	}
	if op.Count {
		r.out--
	}
	return Completion{WRID: w.wrID, Opcode: op.WC, ByteLen: byteLen, Time: now}
}

// completeSend completes the oldest work request with success. Its slot is free
// before the completion is added: who polls that may post at once.
func (r *requester) completeSend(now Time, w *sendWQE, byteLen uint32) {
	r.deliverSend(now, w, byteLen, nil)
}

// deliverSend is completeSend with the inline payload of the completion, nil for
// none.
func (r *requester) deliverSend(now Time, w *sendWQE, byteLen uint32, in *queue.InlinePayload) {
	signaled, wc := r.signals(w), r.success(now, w, byteLen)
	r.sq.Pop()
	if signaled {
		r.deliver(r.sendCQ, &wc, false, in)
	}
}

// signals reports whether a work request makes a completion when it succeeds.
func (r *requester) signals(w *sendWQE) bool { return w.flags&SendSignaled != 0 || r.sigAll }

// progress follows every advance of una: the retry counters start anew, the
// timer too, and what was to be sent again but is acknowledged is skipped.
func (r *requester) progress(now Time) {
	r.retry, r.rnrRetry = r.attr.RetryCnt, r.attr.RNRRetry
	r.retried, r.resent, r.rnrWait = false, false, false
	r.forgetSmall()
	r.stalled, r.stalls = false, 0
	if r.congestion != nil {
		r.learn(now)
	}
	r.recovery.advanced(now)
	// psn fell behind una when it lies, seen from una, behind all that was sent.
	if r.ahead(r.psn) > r.ahead(r.max) {
		r.goBack(r.una)
	}
	if r.ackAt = 0; r.una != r.sentTop {
		r.startAckTimer(now)
	}
	r.recovery.rearm(now)
	r.failWhenOldest(now)
}

// badResponse ends the QP because the peer sent a response that fits no request.
func (r *requester) badResponse(now Time) {
	r.lastDrop = reasonResponse
	r.outcome.judge(VerdictDropped, reasonResponse)
	r.count.Inc(counter.BadResponse)
	r.fail(now, StatusBadRespErr)
}
