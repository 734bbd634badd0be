package engine

import (
	"sync/atomic"

	"xroce/engine/internal/sched"
	"xroce/roce"
)

// A QP is a queue pair of a device (struct ibv_qp). Its methods are safe for
// concurrent use; work requests of one queue are executed in the order of their
// posts.
type QP struct {
	core *roce.QP
	// at is the queue that it lives on. It changes with the device's life lock and all progress
	// locks, and is read without.
	at       atomic.Pointer[queue]
	control  *qpControl
	doorbell atomic.Bool // it was rung and not drained

	extensions roce.Extensions // offered to the peer

	// closed is written with the device's life lock and the progress lock, and read with
	// either.
	closed bool

	pkeyIndex uint16 // that Init and Start set

	// Of the queue's scheduler and its timer wheel.
	entity sched.Entity[QP]
	timer  sched.TimerNode[QP]
}

// A qpControl is the part of a QP that no packet looks at, apart from it to keep what
// packets do look at close together.
type qpControl struct {
	refs   references
	events *eventSource // of the device's asyncEvents
}

// device is the one that the QP is of.
func (q *QP) device() *Device { return q.home().device }

// raise reports an event of the QP. The caller holds the progress lock.
func (q *QP) raise(e roce.Event) {
	if e == roce.EventCommEst {
		q.device().async.established(&q.control.events)
		if q.core.State() != roce.StateRTR {
			return // no event of verbs
		}
	}
	q.device().raise(AsyncEvent{Type: e, QP: q})
}

// OnEstablished has a function called when the first request of a connection comes to a QP in
// RTR, beside the event, or in RTS. It is for a Service, on terms of OnFatal.
func (q *QP) OnEstablished(f func()) {
	d := q.device()
	d.async.source(&q.control.events, AsyncEvent{QP: q}, func(s *eventSource) {
		s.onEstablished = f
	})
	defer q.lock().mu.Unlock()
	q.core.TellEstablished()
}

// OnFatal has a function called, beside the event, when the QP goes to ERR for a reason that no
// completion tells (roce.EventQPFatal), as with a keepalive that nobody answers. It is for a
// Service, which need not take the events of the device for that. The function is called with
// locks of the device held: it must not block, nor call the device but for
// ServiceHandle.Wake, nor take a lock that is held over a call of the device.
func (q *QP) OnFatal(f func()) {
	q.device().async.source(&q.control.events, AsyncEvent{QP: q}, func(s *eventSource) {
		s.onFatal = f
	})
}

// Silent reports whether the QP is in ERR because its peer did not answer the keepalive
// (roce.Attr.Keepalive).
func (q *QP) Silent() bool {
	defer q.lock().mu.Unlock()
	return q.core.Silent()
}

// Type returns the QP's type.
func (q *QP) Type() roce.QPType { return q.core.Type() }

// Query returns the QP's attributes and its state, and in SQD whether it is
// still draining (ibv_query_qp). Attributes that were never set are zero.
func (q *QP) Query() roce.Attr {
	defer q.lock().mu.Unlock()
	return q.core.Attr()
}

// Extensions returns those that the QP offers its peer; Query has those that are in use.
func (q *QP) Extensions() roce.Extensions { return q.extensions }

// HasSRQ reports whether the QP takes its receives from a shared receive queue.
func (q *QP) HasSRQ() bool { return q.control.refs.srq != nil }

// QPN returns the QP number.
func (q *QP) QPN() uint32 { return q.core.Num() }

// State returns the QP's state.
func (q *QP) State() roce.State { return q.core.State() }

// PostSend posts to the send queue (ibv_post_send). The work request is copied;
// the memory that it names must stay until it is complete. It returns
// roce.ErrQueueFull, roce.ErrState or roce.ErrInvalid, and then changed nothing.
// In ERR and SQE the request is taken and completes with a flush error.
func (q *QP) PostSend(wr *roce.SendWR) error {
	if err := q.core.PostSend(wr); err != nil {
		return err
	}
	q.home().ringDoorbell(q)
	return nil
}

// PostRecv posts to the receive queue (ibv_post_recv), from INIT on; the errors
// are those of PostSend. A datagram takes 40 bytes more than its payload: see
// Device.ReplyVector.
func (q *QP) PostRecv(wr *roce.RecvWR) error {
	if err := q.core.PostRecv(wr); err != nil {
		return err
	}
	q.rungByReceives()
	return nil
}

// rungByReceives rings the doorbell if receives that were posted are something to do at once. Few
// are: a QP in ERR flushes them, one whose peer was told that there is none tells it.
func (q *QP) rungByReceives() {
	if q.core.WantsCredit() || q.core.State() == roce.StateErr {
		q.home().ringDoorbell(q)
	}
}

// Snapshot copies the QP's state, for tools.
func (q *QP) Snapshot() roce.Snapshot {
	defer q.lock().mu.Unlock()
	return q.core.Snapshot()
}
