package engine

import (
	"math"

	"xroce/roce"
)

// SendPosted makes a round of progress, in direct mode, on each queue that was posted to and that
// nobody else drives just now: what was posted leaves at once, and not when somebody polls. It
// does nothing when a background driver does it.
func (d *Device) SendPosted() {
	if !d.direct {
		return
	}
	for _, q := range d.queues {
		if q.doorbells.count.Load() > 0 && q.mu.TryLock() {
			q.progress()
			q.mu.Unlock()
		}
	}
}

// ringDoorbell tells the queue that qp has new work. It is safe for concurrent use.
func (q *queue) ringDoorbell(qp *QP) {
	if !q.noteDoorbell(qp) {
		return
	}
	if !q.sendRung() {
		q.rouse()
	}
	if q.dead.Load() {
		// The queue is not driven any more: flush on the poster's thread.
		q.mu.Lock()
		q.progress()
		q.mu.Unlock()
	}
}

// fewPosts is how many posts in a row leave with their caller. From then on they are a burst,
// and the driver sends them many at once.
const fewPosts = 4

// sendRung sends what was posted on the poster's thread when nobody is driving just now but the
// driver, or a caller, is asleep or away: to wake one costs more. It reports whether nothing is
// left for them to do. It does not wait for anybody, and sends a burst of frames at most.
func (q *queue) sendRung() bool {
	t := &q.turns
	if q.direct || !q.spins || (q.sleeping.Load() == 0 && !t.away.Load()) ||
		t.posts.Add(1) > fewPosts {
		return false
	}
	// Again, because somebody may have rung while this had the lock, and did not get it.
	for q.doorbells.count.Load() > 0 {
		if !q.mu.TryLock() {
			return false
		}
		left := q.sendRound()
		q.mu.Unlock()
		if left {
			return false
		}
	}
	return true
}

// sendRound is a round that only sends. It reports whether there is more to do. The caller
// holds mu.
func (q *queue) sendRound() (left bool) {
	q.drainDoorbells()
	now := q.now()
	if q.err != nil {
		q.flushReady(now)
		return false
	}
	q.sendNow(now)
	if at, ok := q.nextDeadline(); ok && at < q.sleepsUntil {
		q.wake() // who sleeps does not know of it
	}
	return !q.ready.Empty() || q.link.Pending() || q.loop.n > 0
}

// noteSleep notes until when who has made a round sleeps at most. The caller holds mu.
func (q *queue) noteSleep(deadline roce.Time, armed bool) {
	if q.sleepsUntil = deadline; !armed {
		q.sleepsUntil = math.MaxInt64
	}
}
