package queue

import (
	"fmt"

	"xroce/roce/mem"
	"xroce/roce/verbs"
)

// SRQConfig says what a new SRQ is.
type SRQConfig struct {
	Domain *mem.Domain // of the LKeys in its receives
	MaxWR  int         // receives in the queue, 1 to MaxWR
	MaxSGE int         // pieces of a receive, 1 to MaxSGE
	// OnEvent, which may be nil, gets EventSRQLimitReached and EventSRQErr. No lock of
	// the SRQ is held, but the progress lock of the queue whose QP took a receive: it
	// must not block.
	OnEvent func(verbs.Event)
}

// An SRQ is a shared receive queue: QPs take the oldest receive when a message
// needs one. It is safe for concurrent use.
type SRQ struct {
	num     uint32
	domain  *mem.Domain
	onEvent func(verbs.Event)
	xrcd    *XRCD // nil for one that is not for XRC
	cq      *CQ   // of an SRQ for XRC

	// rq is used under its mu by both sides: more than one queue takes from it.
	// Its memory comes with the first post.
	rq     WorkQueue[RecvWQE]
	maxWR  int
	limit  int // 0 when not armed
	failed bool
}

// NewSRQ returns an empty SRQ with this number (24 bits).
func NewSRQ(num uint32, c SRQConfig) (*SRQ, error) {
	if num >= 1<<24 {
		return nil, fmt.Errorf("%w: SRQ number %#x has more than 24 bits", verbs.ErrInvalid, num)
	}
	if c.Domain == nil {
		return nil, fmt.Errorf("%w: an SRQ needs a protection domain", verbs.ErrInvalid)
	}
	if err := checkSRQDepth(c.MaxWR); err != nil {
		return nil, err
	}
	if c.MaxSGE < 1 || c.MaxSGE > MaxSGE {
		return nil, fmt.Errorf("%w: %d SRQ SGEs are not in 1..%d", verbs.ErrInvalid, c.MaxSGE,
			MaxSGE)
	}
	s := &SRQ{num: num, domain: c.Domain, onEvent: c.OnEvent, maxWR: c.MaxWR}
	s.rq.maxSGE = uint8(c.MaxSGE)
	return s, nil
}

func checkSRQDepth(depth int) error {
	if depth < 1 || depth > MaxWR {
		return fmt.Errorf("%w: SRQ depth %d is not in 1..%d", verbs.ErrInvalid, depth, MaxWR)
	}
	return nil
}

// Num returns the SRQ number.
func (s *SRQ) Num() uint32 { return s.num }

// Domain returns the protection domain of the receives.
func (s *SRQ) Domain() *mem.Domain { return s.domain }

// XRC reports whether the SRQ was added to an XRC domain.
func (s *SRQ) XRC() bool { return s.xrcd != nil }

// CQ returns where receives complete that an XRC_RECV took, nil before the SRQ was added to
// an XRC domain.
func (s *SRQ) CQ() *CQ { return s.cq }

// MaxSGE returns how many pieces a receive may have.
func (s *SRQ) MaxSGE() int { return int(s.rq.maxSGE) }

// PostRecv adds a receive, or returns ErrQueueFull or ErrInvalid and changes
// nothing; ErrState when the SRQ has failed.
func (s *SRQ) PostRecv(wr *verbs.RecvWR) error {
	length, err := s.rq.CheckSGList(wr.SGList)
	if err != nil {
		return err
	}
	q := &s.rq
	q.mu.Lock()
	defer q.mu.Unlock()
	tail := q.tail.Load()
	switch {
	case s.failed:
		return fmt.Errorf("%w: the SRQ has failed", verbs.ErrState)
	case s.posted() >= s.maxWR:
		return verbs.ErrQueueFull
	}
	if q.ring == nil {
		q.move(q.newRing(s.maxWR))
	}
	*q.At(tail) = RecvWQE{WRID: wr.WRID, Length: length, NumSGE: uint8(len(wr.SGList))}
	copy(q.SGList(tail, len(wr.SGList)), wr.SGList)
	q.tail.Store(tail + 1)
	return nil
}

// Take takes the oldest receive out and copies its pieces to list, which has
// room for MaxSGE; ok is false when there is none, or the SRQ has failed. It is for queue
// pairs, under the progress lock of their queue. When the number left falls
// below the limit, the event is raised and the limit is 0 (IBA 10.2.9).
func (s *SRQ) Take(list []verbs.SGE) (w RecvWQE, ok bool) {
	q := &s.rq
	q.mu.Lock()
	head := q.head.Load()
	if head == q.tail.Load() || s.failed {
		q.mu.Unlock()
		return RecvWQE{}, false
	}
	w = *q.At(head)
	copy(list, q.SGList(head, int(w.NumSGE)))
	q.head.Store(head + 1)
	low := s.posted() < s.limit
	if low {
		s.limit = 0
	}
	q.mu.Unlock()
	if low && s.onEvent != nil {
		s.onEvent(verbs.EventSRQLimitReached)
	}
	return w, true
}

// Fail says that a receive of the SRQ completed and that cannot be told any more, since
// the CQ of the SRQ has overrun. It raises EventSRQErr, once, and no receive is taken or
// posted from then on (IBA 11.6.3). It is for queue pairs, as Take is.
func (s *SRQ) Fail() {
	s.rq.mu.Lock()
	before := s.failed
	s.failed = true
	s.rq.mu.Unlock()
	if !before && s.onEvent != nil {
		s.onEvent(verbs.EventSRQErr)
	}
}

// Failed reports whether Fail was called.
func (s *SRQ) Failed() bool {
	s.rq.mu.Lock()
	defer s.rq.mu.Unlock()
	return s.failed
}

// posted returns how many receives are in the queue. The caller holds rq.mu.
func (s *SRQ) posted() int { return int(s.rq.tail.Load() - s.rq.head.Load()) }

// SRQAttr are the attributes of an SRQ that can change (struct ibv_srq_attr).
type SRQAttr struct {
	MaxWR int // receives in the queue, 1 to MaxWR
	Limit int // fewer receives raise EventSRQLimitReached once; 0 for never
}

// SRQAttrMask names attributes of an SRQ, with the values of enum
// ibv_srq_attr_mask.
type SRQAttrMask uint8

// The attributes of an SRQ.
const (
	SRQAttrMaxWR SRQAttrMask = 1 << 0
	SRQAttrLimit SRQAttrMask = 1 << 1
)

// Modify sets the attributes in the mask, all or nothing (ibv_modify_srq). What
// is posted stays, in order; the error is ErrInvalid when MaxWR is less than that,
// or than the limit that holds afterwards. A limit above what is posted takes
// effect with the next receive that is taken.
func (s *SRQ) Modify(a SRQAttr, mask SRQAttrMask) error {
	if mask&^(SRQAttrMaxWR|SRQAttrLimit) != 0 {
		return fmt.Errorf("%w: SRQ attribute mask %#x", verbs.ErrInvalid, uint8(mask))
	}
	var ring []RecvWQE
	var sges []verbs.SGE
	if mask&SRQAttrMaxWR != 0 {
		if err := checkSRQDepth(a.MaxWR); err != nil {
			return err
		}
		// Before the lock is taken, for which queues may be waiting.
		ring, sges = s.rq.newRing(a.MaxWR)
	}
	s.rq.mu.Lock()
	defer s.rq.mu.Unlock()
	next := SRQAttr{s.maxWR, s.limit}
	if mask&SRQAttrMaxWR != 0 {
		next.MaxWR = a.MaxWR
	}
	if mask&SRQAttrLimit != 0 {
		next.Limit = a.Limit
	}
	switch {
	case next.Limit < 0 || next.Limit > next.MaxWR:
		return fmt.Errorf("%w: SRQ limit %d is not in 0..%d", verbs.ErrInvalid, next.Limit,
			next.MaxWR)
	case next.MaxWR < s.posted():
		return fmt.Errorf("%w: SRQ depth %d, but %d receives are posted",
			verbs.ErrInvalid, next.MaxWR, s.posted())
	}
	if ring != nil && s.rq.ring != nil {
		s.rq.move(ring, sges)
	}
	s.maxWR, s.limit = next.MaxWR, next.Limit
	return nil
}

// Query returns the attributes, where a limit of 0 is one that is not armed, and
// how many receives are posted (ibv_query_srq).
func (s *SRQ) Query() (a SRQAttr, posted int) {
	s.rq.mu.Lock()
	defer s.rq.mu.Unlock()
	return SRQAttr{s.maxWR, s.limit}, s.posted()
}
