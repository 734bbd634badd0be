package engine

import (
	"sync"
	"sync/atomic"
)

// doorbells are the QPs that were posted to since the loop drained them. Posters ring,
// the loop drains; a lock of its own is between them, which is taken once per idle QP on
// one side and once per round on the other.
type doorbells struct {
	mu    sync.Mutex
	count atomic.Int32 // of qps, for a look without the lock
	qps   []*QP
	spare []*QP
}

// drainDoorbells makes the QPs ready whose doorbells were rung, and reports whether there
// were any. The caller holds mu.
func (q *queue) drainDoorbells() bool {
	b := &q.doorbells
	if b.count.Load() == 0 {
		return false
	}
	b.mu.Lock()
	rung := b.qps
	b.qps, b.spare = b.spare[:0], rung
	b.count.Store(0)
	b.mu.Unlock()
	for i, qp := range rung {
		// A post after this rings again, one before it is seen by the send
		// step of this round.
		qp.doorbell.Store(false)
		if home := qp.home(); home == q {
			q.enqueue(qp)
		} else if home.noteDoorbell(qp) { // it moved after it was rung
			home.link.Wake()
		}
		rung[i] = nil
	}
	return true
}

// noteDoorbell has the loop find that the doorbell of a QP was rung, and reports whether it did
// not know.
func (q *queue) noteDoorbell(qp *QP) bool {
	if !qp.doorbell.CompareAndSwap(false, true) {
		return false
	}
	b := &q.doorbells
	b.mu.Lock()
	defer b.mu.Unlock()
	b.qps = append(b.qps, qp)
	b.count.Store(int32(len(b.qps)))
	return true
}

// wakeDriver has the background driver look at the deadlines again, after a round that
// somebody else made: it may sleep until one that was the next before. In direct mode
// who made the round looks itself. The caller holds mu.
func (q *queue) wakeDriver() {
	if !q.direct {
		q.wake()
	}
}

// wake makes whoever drives the queue look at it again, after something changed
// that no doorbell tells. Unlike a doorbell it cannot rely on sleeping: who drives looks
// at the deadlines first and announces its sleep afterwards. The caller holds mu,
// so the link is open.
func (q *queue) wake() {
	if q.err == nil {
		q.link.Wake()
	}
}

// rouse has somebody look at the doorbells and the inbox, which were filled before. It never
// blocks.
func (q *queue) rouse() {
	if q.sleeping.Load() > 0 {
		q.link.Wake()
	}
	if t := &q.turns; t.away.Load() && !t.driving.Load() {
		raise(t.back)
	}
}
