package engine

import (
	"math"
	"sync/atomic"

	"xroce/roce"
)

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
	wanted chan wantedMove // has room for one; nil where there is one queue
	// deserted are queues that the QPs are to leave, with room for one.
	deserted chan *queue
	count    atomic.Uint64
}

// leave has the QPs of a queue moved to others, if there are others. It does not wait: who was not
// heard says so again.
func (m *moves) leave(q *queue) {
	select {
	case m.deserted <- q:
	default:
	}
}

// A wantedMove is a QP and the queue that it is to move to.
type wantedMove struct {
	qp *QP
	to *queue
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
	if t := qp.core.Type(); t == roce.TypeGSI || t == roce.TypeRawPacket {
		return
	}
	select {
	case d.moves.wanted <- wantedMove{qp, d.queues[from]}:
	default: // others move; this one is counted anew
	}
}
