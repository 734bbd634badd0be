package roce

import (
	"fmt"

	"xroce/roce/queue"
)

// This file takes work requests for the receive queue.

// PostRecv adds a work request to the receive queue, or returns ErrQueueFull,
// ErrState or ErrInvalid and changes nothing. In state ERR the request is taken
// and completes with a flush error. It is safe for concurrent use.
func (q *QP) PostRecv(wr *RecvWR) error {
	if err := q.takesReceives(); err != nil {
		return err
	}
	q.rsp.rq.Lock()
	defer q.rsp.rq.Unlock()
	if err := q.rsp.fill(0, wr); err != nil {
		return err
	}
	q.rsp.rq.Push(1)
	return nil
}

// PostRecvs is PostRecv of each, in their order, with one lock. It returns how many were posted;
// the error is that of the next one, and those from it on changed nothing.
func (q *QP) PostRecvs(list []RecvWR) (n int, err error) {
	if err := q.takesReceives(); err != nil {
		return 0, err
	}
	q.rsp.rq.Lock()
	defer q.rsp.rq.Unlock()
	for ; n < len(list); n++ {
		if err = q.rsp.fill(uint32(n), &list[n]); err != nil {
			break
		}
	}
	q.rsp.rq.Push(uint32(n))
	return n, err
}

// takesReceives is ErrInvalid for a QP that has no receive queue of its own.
func (q *QP) takesReceives() error {
	if q.rsp.rq.MaxSGE() == 0 {
		return fmt.Errorf("%w: the QP has no receive queue of its own", ErrInvalid)
	}
	return nil
}

// fill writes a work request to an entry: see WorkQueue.Next. The caller holds the lock of the
// queue.
func (s *responder) fill(n uint32, wr *RecvWR) error {
	length, err := s.rq.CheckSGList(wr.SGList)
	if err != nil {
		return err
	}
	if state := s.State(); state == StateReset {
		return fmt.Errorf("%w: receiving needs INIT, the QP is in %s", ErrState, state)
	}
	e, err := s.rq.Next(n)
	if err != nil {
		return err
	}
	*e = queue.RecvWQE{WRID: wr.WRID, Length: length, NumSGE: uint8(len(wr.SGList))}
	s.rq.Fill(n, wr.SGList, nil)
	return nil
}

// WantsCredit reports whether the peer was told that no receive is posted: after
// the next PostRecv the QP has a packet to send. It is safe for concurrent use.
func (q *QP) WantsCredit() bool { return q.rsp.noCredits.Load() }
