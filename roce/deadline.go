package roce

import (
	"xroce/roce/clock"
	"xroce/roce/counter"
)

// The local ACK timer (IBA 9.7.6.1.3) runs while something is unacknowledged. When it
// has run out, the peer did not acknowledge in time, or whoever drives the QP was late:
// late to look at what came, or late to transmit what was written. Only the driver
// knows which. So it asks LossTimer before it calls HandleDeadline, does first what it
// has left undone, and postpones the timer when the packet was not out long enough.

// maxPostponed is how often in a row one timeout may be postponed. A timer may take up
// to four times what the attribute says (IBA 9.7.6.1.3).
const maxPostponed = 3

// deadline returns when handleDeadline wants to be called, 0 for never.
func (r *requester) deadline() Time {
	at := r.ackAt
	if r.rnrWait {
		at = r.mark
	} else if r.stalled {
		at = clock.Sooner(at, r.mark)
	}
	if r.paced {
		at = clock.Sooner(at, r.pace.Due())
	}
	if r.congestion != nil {
		at = clock.Sooner(at, r.congestion.deadline())
	}
	return clock.Sooner(clock.Sooner(at, r.recovery.deadline()), r.keepaliveAt())
}

// handleDeadline acts on the requester's timers, without those of the loss recovery: see
// QP.HandleDeadline.
func (r *requester) handleDeadline(now Time) {
	if r.congestion != nil {
		r.controlDeadline(now)
	}
	if now >= r.pace.Due() {
		r.paced = false // next waits again if need be
	}
	if r.stalled && now >= r.mark {
		r.stalled = false
	}
	switch {
	case r.rnrWait && now >= r.mark:
		r.rnrWait = false
	case r.ackTimerExpired(now):
		r.count.Inc(counter.LocalAckTimeout)
		r.retried = false
		r.lost(now, true)
		r.recovery.timedOut(now)
	case r.keepaliveExpired(now):
		r.checkPeer(now)
	}
}

// LossTimer reports whether HandleDeadline would now take something for lost that did
// not come in time, rather than end a wait of its own. started is when the local ACK
// timer was started, and now itself when the peer cannot be to blame: nothing was sent
// since the last retry, or the timer is found so late that another whole timeout has
// passed, and with the driver the peer may have been kept from running. It is 0 when
// only a gap has been open for too long, or the keepalive is to act. It needs the progress
// lock.
func (q *QP) LossTimer(now Time) (started Time, expired bool) {
	r := &q.req
	if !r.ackTimerExpired(now) {
		gap := clock.Sooner(r.recovery.deadline(), q.rsp.gapDeadline())
		return 0, gap != 0 && now >= gap || r.keepaliveExpired(now)
	}
	t := ackTimeout(q.attr.Timeout)
	if r.psn == r.una || (r.postponed == 0 && now-r.ackAt >= t) {
		return now, true
	}
	return r.ackAt - t, true
}

// PostponeAckTimer lets a local ACK timer that has expired run from a time on: what the
// peer is to acknowledge left no earlier. It reports false, and HandleDeadline is to be
// called, when the timer would have expired all the same, or was postponed three times
// already. It needs the progress lock.
func (q *QP) PostponeAckTimer(now, since Time) bool {
	r := &q.req
	at := since + ackTimeout(q.attr.Timeout)
	if !r.ackTimerExpired(now) || at <= now || r.postponed == maxPostponed {
		return false
	}
	r.ackAt = at
	r.postponed++
	return true
}

// RestartAckTimer lets a local ACK timer that has expired run again from now, or the keepalive,
// whose questions wait for an answer as long: nothing could leave since it was started, and
// nothing come. It reports false when neither had expired. Unlike PostponeAckTimer it may be called
// any number of times; how long that goes on is the driver's to bound. It needs the progress lock.
func (q *QP) RestartAckTimer(now Time) bool {
	r := &q.req
	switch {
	case r.ackTimerExpired(now):
		r.ackAt = now + ackTimeout(q.attr.Timeout)
	case r.keepaliveExpired(now):
		r.mark = now
	default:
		return false
	}
	return true
}
