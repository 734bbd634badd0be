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
	if q.rsp.rq.MaxSGE() == 0 {
		return fmt.Errorf("%w: the QP has no receive queue of its own", ErrInvalid)
	}
	length, err := q.rsp.rq.CheckSGList(wr.SGList)
	if err != nil {
		return err
	}
	q.rsp.rq.Lock()
	defer q.rsp.rq.Unlock()
	if s := q.State(); s == StateReset {
		return fmt.Errorf("%w: receiving needs INIT, the QP is in %s", ErrState, s)
	}
	e, err := q.rsp.rq.Next()
	if err != nil {
		return err
	}
	*e = queue.RecvWQE{WRID: wr.WRID, Length: length, NumSGE: uint8(len(wr.SGList))}
	q.rsp.rq.Push(wr.SGList, nil)
	return nil
}

// WantsCredit reports whether the peer was told that no receive is posted: after
// the next PostRecv the QP has a packet to send. It is safe for concurrent use.
func (q *QP) WantsCredit() bool { return q.rsp.noCredits.Load() }
