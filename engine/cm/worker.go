package cm

import (
	"fmt"
	"sync"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/mem"
)

// A worker has the completion queue of all connections of a manager that were made without
// queues of the application, and gives each completion to the call that waits for it. It is
// an engine.Service, so calls need nobody else who polls.
type worker struct {
	manager *Manager
	cq      *engine.CQ
	handle  *engine.ServiceHandle

	mu      sync.Mutex        // after the manager's; not held while the CQ is polled
	conns   map[uint32]*calls // by QPN
	entries int               // of the CQ that the connections may need
	closing bool
}

// calls are those that a connection may have under way.
type calls struct {
	worker  *worker
	conn    *Conn
	qp      *engine.QP
	sends   lane
	recvs   lane
	results *engine.MR // of atomics, 8 bytes for each of sends
}

// A lane is the calls of one work queue, each with a number, which is in its work request ID.
type lane struct {
	free chan int // the numbers that are not in use
	done []chan roce.Completion
}

// recvID marks the work request IDs of receives.
const recvID = 1 << 63

func (l *lane) init(n int) {
	l.free, l.done = make(chan int, n), make([]chan roce.Completion, n)
	for i := range n {
		l.free <- i
	}
}

// newCalls makes room for the calls of a connection, and says which queues its queue pair has.
func (m *Manager) newCalls(pd *engine.PD, init *engine.QPInit) (*calls, error) {
	for _, n := range []*int{&init.MaxSendWR, &init.MaxRecvWR} {
		if *n == 0 {
			*n = defaultCalls
		}
		if *n < 0 || *n > roce.MaxWR {
			return nil, fmt.Errorf("%w: %d work requests, 1 to %d", roce.ErrInvalid, *n, roce.MaxWR)
		}
	}
	results, err := m.dev.RegMR(pd, make([]byte, 8*init.MaxSendWR), mem.LocalWrite)
	if err != nil {
		return nil, err
	}
	w, err := m.join(init.MaxSendWR + init.MaxRecvWR)
	if err != nil {
		// No window is bound to it, so this cannot fail.
		_ = results.Deregister()
		return nil, err
	}
	c := &calls{worker: w, results: results}
	c.sends.init(init.MaxSendWR)
	c.recvs.init(init.MaxRecvWR)
	init.SendCQ, init.RecvCQ = w.cq, w.cq
	return c, nil
}

// defaultCalls is how many calls of a connection may be under way each way.
const defaultCalls = 128

// join takes so many entries of the worker's CQ. It makes the worker if there is none.
func (m *Manager) join(entries int) (*worker, error) {
	m.working.Lock()
	defer m.working.Unlock()
	if m.workEnded {
		return nil, ErrClosed
	}
	if m.worker == nil {
		cq, err := m.dev.CreateCQ(entries)
		if err != nil {
			return nil, err
		}
		w := &worker{manager: m, cq: cq, conns: map[uint32]*calls{}}
		if w.handle, err = m.dev.AddService(w, cq); err != nil {
			_ = cq.Close() // nobody uses it, so this cannot fail
			return nil, err
		}
		m.worker = w
	}
	w := m.worker
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.entries + entries; n > w.cq.Depth() {
		if err := w.cq.Resize(max(n, 2*w.cq.Depth())); err != nil {
			return nil, fmt.Errorf("cm: room for one more connection: %w", err)
		}
	}
	w.entries += entries
	return w, nil
}

// endWork ends the worker, which goes with the last connection.
func (m *Manager) endWork() {
	m.working.Lock()
	defer m.working.Unlock()
	m.workEnded = true
	w := m.worker
	if w == nil {
		return
	}
	_ = w.handle.Close() // never fails
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = true
	w.closeIfLast()
}

// closeIfLast closes the CQ when nobody uses it any more. The caller holds mu.
func (w *worker) closeIfLast() {
	if w.closing && w.entries == 0 {
		_ = w.cq.Close() // no queue pair uses it, so this cannot fail
	}
}

// begin has the completions of a queue pair given to the calls of its connection.
func (c *calls) begin(conn *Conn) {
	c.conn, c.qp = conn, conn.qp
	c.worker.mu.Lock()
	defer c.worker.mu.Unlock()
	c.worker.conns[c.qp.QPN()] = c
}

// end gives the room back. The queue pair is closed.
func (c *calls) end() {
	w := c.worker
	_ = c.results.Deregister() // no window is bound to it, so this cannot fail
	w.mu.Lock()
	defer w.mu.Unlock()
	if c.qp != nil {
		delete(w.conns, c.qp.QPN())
	}
	w.entries -= len(c.sends.done) + len(c.recvs.done)
	w.closeIfLast()
}

// HandleCompletions implements engine.Service.
func (w *worker) HandleCompletions(roce.Time) (more bool) {
	for range batches {
		if n := w.deliver(false); n == 0 && !w.cq.Arm(false) {
			return false
		}
	}
	return true
}

// NextDeadline implements engine.Service.
func (*worker) NextDeadline() (roce.Time, bool) { return 0, false }

// HandleDeadline implements engine.Service.
func (*worker) HandleDeadline(roce.Time) {}

// HandleFailure implements engine.Service. All queue pairs are in ERR: what was posted is
// complete.
func (w *worker) HandleFailure(error) {
	for w.deliver(false) > 0 {
	}
}

// poll gives some completions to who waits for them, and returns how many there were. It may
// be called by anybody who holds no lock, and drives a device in direct mode.
func (w *worker) poll() int { return w.deliver(true) }

// deliver is poll that drives the device or, for a handler, does not.
func (w *worker) deliver(drives bool) (n int) {
	var wcs [32]roce.Completion
	// The error is of a CQ that overran, which has room for all: its queue pairs are in ERR.
	if drives {
		n, _ = w.cq.Poll(wcs[:])
	} else {
		n, _ = w.cq.Take(wcs[:])
	}
	for i := range wcs[:n] {
		w.take(&wcs[i])
	}
	return n
}

// take gives a completion to the call that waits for it. One that failed ends the connection.
func (w *worker) take(wc *roce.Completion) {
	w.mu.Lock()
	c := w.conns[wc.QPN]
	w.mu.Unlock()
	if c == nil {
		return // of a connection that is over
	}
	l, number := &c.sends, wc.WRID
	if wc.WRID&recvID != 0 {
		l, number = &c.recvs, wc.WRID&^recvID
	}
	if err := wc.Err(); err != nil {
		if wc.Status == roce.StatusWRFlushErr && c.qp.Silent() {
			err = ErrKeepalive
		}
		c.conn.abort(err)
	}
	if number < uint64(len(l.done)) && l.done[number] != nil { // else the application posted it
		select {
		case l.done[number] <- *wc:
		default:
		}
	}
}
