package engine

import (
	"math"
	"sync/atomic"
	"time"

	"xroce/roce"
)

// This file moves QPs to the driver whose queues their packets come to, since to hand each over
// costs a copy and a wake-up. Which queue that is a card decides by a hash of addresses and ports.

// A stray is what a queue knows of the packets of a QP that came to other queues than its own: a
// vote of the majority (Boyer and Moore), which needs no count for each of them.
type stray struct {
	qpn   uint32
	n     uint16 // by how many packets the other queue leads
	from  uint8  // its index
	moves uint8  // how often the QP has moved
}

// strays are those of a queue, in places by the number of the QP: of two that have the same place
// the one with packets that stray goes on.
type strays [256]stray

// of is where the stray of a QP is, or that of another one.
func (s *strays) of(qp *QP) *stray { return &s[qp.core.Num()%uint32(len(s))] }

// home counts a packet that came to the queue of the QP.
func (s *strays) home(qp *QP) {
	if e := s.of(qp); e.n > 0 && e.qpn == qp.core.Num() {
		e.n--
	}
}

// movesOf is how often a QP has moved, as far as that is known.
func (s *strays) movesOf(qp *QP) uint8 {
	if e := s.of(qp); e.qpn == qp.core.Num() {
		return min(e.moves, moveDoubles)
	}
	return 0
}

// How many packets another queue must lead by before a QP moves there: more each time, so that
// one whose packets come everywhere does not move for ever.
const (
	movesAfter  = 1024
	moveDoubles = 5 // how often that doubles
)

// moves are those of QPs of a device.
type moves struct {
	busy  atomic.Bool // one is under way
	count atomic.Uint64
}

// stray counts a packet that another queue handed over to the QP, and has the QP move there when
// most come from it. The caller holds mu.
func (q *queue) stray(qp *QP, from int) {
	d, qpn := q.device, qp.core.Num()
	if d.options.NoRebalance || from > math.MaxUint8 {
		return
	}
	s := q.strays.of(qp)
	switch {
	case s.n == 0 && s.qpn != qpn:
		*s = stray{qpn: qpn, from: uint8(from)}
	case s.n == 0:
		s.from = uint8(from)
	case int(s.from) != from || s.qpn != qpn:
		s.n--
		return
	}
	if s.n++; s.n < movesAfter<<min(s.moves, moveDoubles) {
		return
	}
	s.n = 0
	if t := qp.Type(); t == roce.TypeGSI || t == roce.TypeRawPacket || d.failure() != nil {
		return
	}
	if d.moves.busy.CompareAndSwap(false, true) {
		d.watching.Go(func() {
			defer d.moves.busy.Store(false)
			d.move(qp, d.queues[from])
		})
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
	if !qp.core.Rehome(&to.count, &to.common) {
		return false
	}
	from.forget(qp)
	from.members--
	qp.at.Store(to)
	to.members++
	to.sizeReceiveRing(qp.Type())
	*to.strays.of(qp) = stray{qpn: qp.core.Num(), moves: from.strays.movesOf(qp) + 1}
	to.reschedule(qp)
	to.wake()
	d.moves.count.Add(1)
	return true
}
