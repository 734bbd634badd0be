package engine

import "xroce/roce"

// maxBacklog is how many frames a queue handles, beyond the burst of the round,
// before it takes anything for lost: as many as may have come while it did not run,
// which is what the receive ring of a link holds by default (xsk.DefaultRxFrames,
// rounded up). If more come in that time, the timers do not wait for them.
const maxBacklog = 1 << 14

// now reads the clock, and notes when the transmit ring has become empty.
func (q *queue) now() roce.Time {
	now := q.clock.Now()
	if q.txDelay.open && !q.link.Pending() {
		q.txDelay.left(now)
	}
	q.at = now
	return now
}

// expire looks at the QPs whose deadline has come. It reports whether any had
// something to do, and whether it received frames for that.
func (q *queue) expire(now roce.Time) (expired, received bool) {
	current := false // what came by now has been handled
	for qp := q.timers.Pop(now); qp != nil; qp = q.timers.Pop(now) {
		if _, expired := qp.core.LossTimer(now); expired && !current {
			received, current = q.receiveBacklog(now), true
		}
		at, ok := qp.core.NextDeadline()
		switch {
		case !ok:
		case at > now || q.postpone(now, qp):
			// It moved later; see sched.Wheel.
			q.armTimer(qp)
		default:
			qp.core.HandleDeadline(now)
			q.reschedule(qp)
			expired = true
		}
	}
	return expired, received
}

// receiveBacklog receives and handles the frames that have come, and reports whether
// there were any. A loop that was not scheduled for a while finds its timers run out
// and the acknowledges in the receive ring; so does one that was stopped between
// looking at the ring and looking at the clock.
func (q *queue) receiveBacklog(now roce.Time) bool {
	for got := q.handleInbox(now, inboxFrames/burst); got < maxBacklog; {
		n := q.link.Receive(q.rx[:])
		if n == 0 {
			return got > 0
		}
		q.handle(now, q.rx[:n])
		q.link.Release(q.rx[:n])
		got += n
	}
	return true
}

// postpone puts off a timer that ran out before the peer could acknowledge: the packet
// that it is for waited here, or the loop did not run. Where the interface is down
// packets wait too, but there the peer is out of reach, and the QP has to learn that.
func (q *queue) postpone(now roce.Time, qp *QP) bool {
	since, expired := qp.core.LossTimer(now)
	if expired && q.excused(now) {
		return qp.core.RestartAckTimer(now)
	}
	return expired && q.outage == nil && qp.core.PostponeAckTimer(now, q.txDelay.by(since, now))
}
