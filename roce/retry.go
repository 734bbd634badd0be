package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// This file is about what every loss recovery does: go back, at the price of a retry.

// goBack makes p, before which all is acknowledged or need not be sent again, the next
// PSN to send.
func (r *requester) goBack(p wire.PSN) {
	r.psn, r.cur, r.sinceAck = p, r.entryOf(p), 0
	if !r.recovery.selective() && r.asked.After(p) {
		r.asked = p // nobody is to answer for what goes again before it asks again
	}
}

// entryOf returns the send queue entry that a PSN belongs to, new for one that no entry
// has.
func (r *requester) entryOf(p wire.PSN) uint32 {
	i := r.sq.Head()
	for i != r.new && r.ahead(r.sq.At(i).last) < r.ahead(p) {
		i++
	}
	return i
}

// retryFrom sends everything from p on again, or fails the oldest work request
// when RETRY_CNT is used up.
func (r *requester) retryFrom(now Time, p wire.PSN) {
	if r.takeRetry(now) {
		r.recovery.wentBack(now)
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
	r.sentAgain(now)
	if r.retry == 0 {
		r.lastRetry()
	}
	return true
}

// sentAgain follows the decision to send the oldest packet again.
func (r *requester) sentAgain(now Time) {
	r.resent = true
	r.lost(now, false)
}

// sendFrom makes p the next PSN to send, and starts the local ACK timer anew.
func (r *requester) sendFrom(now Time, p wire.PSN) {
	r.goBack(p)
	r.startAckTimer(now)
}
