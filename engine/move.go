package engine

import "time"

// This file moves QPs to the driver whose queues their packets come to, since to hand each over
// costs a copy and a wake-up. Which queue that is a card decides by a hash of addresses and ports.

// followMoves moves QPs, one after the other, until the device ends.
func (d *Device) followMoves() {
	for {
		select {
		case m := <-d.moves.wanted:
			d.move(m.qp, m.to)
		case q := <-d.moves.deserted:
			d.evacuate(q)
		case <-d.failed:
			return
		}
	}
}

// How often, and after what time, a move is tried again until all that the queue has sent has
// left the card: else what the QP sends next could overtake it.
const (
	moveTries = 20
	movePause = 100 * time.Microsecond
)

// move moves a QP to another queue, unless what is under way keeps it. Meanwhile the queue that it
// leaves sends nothing.
func (d *Device) move(qp *QP, to *queue) {
	for range moveTries {
		if d.tryMove(qp, to) {
			break
		}
		d.pause(movePause)
	}
	d.life.Lock()
	defer d.life.Unlock()
	for _, q := range d.queues {
		q.lock()
		if q.holds {
			q.holds = false
			q.wake() // to send what waits
		}
		q.mu.Unlock()
	}
}

// tryMove is a try of move. It reports whether there is no need for another. With all locks held
// nothing comes, goes or is handed over. What was received for the QP is handled first, so that
// nothing overtakes it.
func (d *Device) tryMove(qp *QP, to *queue) (done bool) {
	d.lock()
	defer d.unlock()
	from := qp.home()
	if qp.closed || from == to || d.failure() != nil {
		return true
	}
	now := from.now()
	for _, q := range d.queues {
		q.handle(now, q.loop.take())
	}
	for _, q := range d.queues {
		q.handleInbox(now, 1+inboxFrames/burst)
	}
	if !from.link.Drained() {
		from.holds = true
		return false
	}
	if !qp.core.Rehome(to.counts(from, qp), &to.common) {
		return false
	}
	to.takeCounts(from, qp)
	from.forget(qp)
	from.members--
	qp.at.Store(to)
	to.members++
	to.sizeReceiveRing(qp.Type())
	if qp.Type().Datagram() {
		qp.core.SetPortMTU(to.activeMTU())
	}
	*to.strays.of(qp) = stray{qpn: qp.core.Num(), moves: from.strays.movesOf(qp) + 1}
	to.reschedule(qp)
	to.wake()
	d.moves.count.Add(1)
	return true
}

// evacuate moves the QPs of a queue whose receive queues the card does not have any more to others,
// where their packets come by now. What cannot be moved yet is when this is called again.
func (d *Device) evacuate(q *queue) {
	var qps []*QP
	q.lock()
	for _, qp := range d.qps.All {
		if qp.home() == q {
			qps = append(qps, qp)
		}
	}
	q.mu.Unlock()
	for _, qp := range qps {
		d.life.Lock()
		to := d.queueFor()
		d.life.Unlock()
		if to == q || to.link.link.Load() == nil {
			return // there is no other
		}
		d.move(qp, to)
	}
}
