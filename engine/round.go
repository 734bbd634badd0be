package engine

import "xroce/roce"

// This file makes rounds of progress.

// progress makes one round and reports whether there was anything to do. The
// caller holds mu.
func (q *queue) progress() bool {
	rung := q.drainDoorbells()
	if q.err != nil {
		q.at = q.clock.Now()
		return q.flushReady(q.at)
	}
	if q.sendDeferred && rung {
		// The caller answered what it saw. That leaves before anything else is
		// looked at.
		q.sendNow(q.now())
		return true
	}
	looped, forwarded := q.loop.take(), q.inbox.take(q.forwarded[:])
	n := q.link.Receive(q.rx[:])
	if len(looped) == 0 && forwarded == 0 && n == 0 && q.idles() {
		return false
	}
	now := q.now()
	q.device.paging.tick(now)
	q.handle(now, looped)
	if forwarded > 0 {
		q.handleForwarded(now, q.forwarded[:forwarded])
		q.inbox.release(forwarded)
	}
	if n > 0 {
		q.handle(now, q.rx[:n])
		q.link.Release(q.rx[:n])
	}
	expired, late := q.expire(now)
	received := n > 0 || len(looped) > 0 || forwarded > 0 || late
	notified := q.notifyDue(now)
	if received && !q.sendDeferred && (q.direct || q.reply.waits(now)) {
		// Let the caller see what came before anything is sent: its own reply
		// then leaves with our acknowledgement, in one system call.
		q.sendDeferred = true
		return true
	}
	sent := q.sendNow(now)
	return received || expired || notified || sent
}

// sendNow sends, also what the last round left to this one.
func (q *queue) sendNow(now roce.Time) bool {
	if q.sendDeferred && !q.direct {
		q.reply.came(now)
	}
	q.sendDeferred = false
	return q.send(now)
}

// idles reports whether a round in which nothing came may end here. Reading the
// clock is most of such a round, and a frame that comes meanwhile waits for its
// end, so the timers are looked at in every eighth alone: some hundred nanoseconds
// late at most. A clock that is not the machine's moves by rounds, and gets all.
func (q *queue) idles() bool {
	if !q.ready.Empty() || !q.spins || q.link.Pending() {
		return false
	}
	q.idle++
	return q.idle%idleRounds != 0
}

// flushReady lets QPs in ERR flush what was posted to them. They send nothing,
// so they need no frame.
func (q *queue) flushReady(now roce.Time) bool {
	any := false
	for qp := q.ready.Dequeue(); qp != nil; qp = q.ready.Dequeue() {
		qp.core.NextPacket(now, nil)
		any = true
	}
	return any
}

// nextDeadline is when the queue wants to be driven in any case.
func (q *queue) nextDeadline() (roce.Time, bool) {
	at, ok := q.timers.Next()
	for _, c := range q.moderated {
		if t, armed := c.core.NextDeadline(); armed && (!ok || t < at) {
			at, ok = t, true
		}
	}
	return at, ok
}
