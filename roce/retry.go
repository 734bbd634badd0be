package roce

import (
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// This file is about what every loss recovery does: go back, at the price of a retry.

// goBack makes p, before which all is acknowledged or need not be sent again, the next
// PSN to send.
func (r *requester) goBack(p wire.PSN) {
	i := r.sq.Head()
	for i != r.new && r.ahead(r.sq.At(i).last) < r.ahead(p) {
		i++
	}
	r.psn, r.cur, r.sinceAck = p, i, 0
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

// sendFrom makes p the next PSN to send, and starts the local ACK timer anew.
func (r *requester) sendFrom(now Time, p wire.PSN) {
	r.goBack(p)
	r.startAckTimer(now)
}
