package engine

import (
	"fmt"
	"sync/atomic"

	"xroce/roce"
)

// A QP is a queue pair of a device.
type QP struct {
	machine *roce.QP
	device  *Device
	shares  shares
	events  *eventSource // of the device's asyncEvents
	rung    atomic.Bool  // the doorbell was rung and not answered

	// Under the progress lock:
	closed bool

	// Of the queue's turns.
	waiting              bool   // it is in a list of them,
	place                uint8  // which is this one
	round                uint32 // the last one in which it had a turn,
	credit               int32  // and what was left of it, in bytes
	nextReady, prevReady *QP

	// Of the queue's wheel.
	timerSlot            uint16 // the list that it is in plus one, 0 for none
	timerAt              roce.Time
	nextTimer, prevTimer *QP
}

// raise reports an event of the QP. The caller holds the progress lock.
func (q *QP) raise(e roce.Event) { q.device.raise(AsyncEvent{Type: e, QP: q}) }

// Type returns the QP's type.
func (q *QP) Type() roce.QPType { return q.machine.Type() }

// Query returns the QP's attributes (ibv_query_qp).
func (q *QP) Query() roce.Attr {
	q.device.queue.mu.Lock()
	defer q.device.queue.mu.Unlock()
	return q.machine.Attr()
}

// QPN returns the QP number.
func (q *QP) QPN() uint32 { return q.machine.Num() }

// State returns the QP's state.
func (q *QP) State() roce.State { return q.machine.State() }

// Modify is ibv_modify_qp; a.Path comes from Device.ResolvePath. The error
// names the attribute that is missing, superfluous or out of range.
func (q *QP) Modify(a *roce.Attr, mask roce.AttrMask) error {
	if mask&roce.AttrPathMTU != 0 {
		if active := q.device.ActiveMTU(); a.PathMTU > active {
			return fmt.Errorf("%w: PATH_MTU %d is above the device's active MTU %d",
				roce.ErrInvalid, a.PathMTU.Bytes(), active.Bytes())
		}
	}
	queue := q.device.queue
	queue.mu.Lock()
	defer queue.mu.Unlock()
	if q.closed {
		return errClosed
	}
	err := q.machine.Modify(queue.clock.Now(), a, mask)
	queue.touched(q)
	return err
}

// PostSend posts to the send queue: see roce.QP.PostSend.
func (q *QP) PostSend(wr *roce.SendWR) error {
	if err := q.machine.PostSend(wr); err != nil {
		return err
	}
	q.device.queue.ring(q)
	return nil
}

// PostRecv posts to the receive queue: see roce.QP.PostRecv.
func (q *QP) PostRecv(wr *roce.RecvWR) error {
	if err := q.machine.PostRecv(wr); err != nil {
		return err
	}
	// Few have something to do at once: one in ERR flushes the receive, one whose
	// peer was told that there is none tells it.
	if q.machine.WantsCredit() || q.machine.State() == roce.StateErr {
		q.device.queue.ring(q)
	}
	return nil
}

// Snapshot copies the QP's state, for tools.
func (q *QP) Snapshot() roce.Snapshot {
	q.device.queue.mu.Lock()
	defer q.device.queue.mu.Unlock()
	return q.machine.Snapshot()
}

// Close destroys the QP. Outstanding work vanishes without completions; what
// the peer still sends to it is dropped.
func (q *QP) Close() {
	queue := q.device.queue
	queue.mu.Lock()
	defer queue.mu.Unlock()
	if q.closed {
		return
	}
	q.closed = true
	q.shares.use(-1)
	q.device.detachAll(q)
	queue.detachRaw(q)
	queue.qps.Delete(q.machine.Num())
	queue.forget(q)
	q.device.async.forget(q.events)
	// To RESET from any state: this cannot be refused.
	_ = q.machine.Modify(queue.clock.Now(), &roce.Attr{State: roce.StateReset}, roce.AttrState)
}
