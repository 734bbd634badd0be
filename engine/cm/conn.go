package cm

import (
	"net/netip"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
)

// A Conn is a connection. Its methods are safe for concurrent use.
type Conn struct {
	manager *Manager
	id      cm.ID
	qp      *engine.QP
	made    bool   // the manager made qp
	calls   *calls // nil when the completion queues are the application's
	alive   uint32 // Setup.Keepalive, in ms
	local   netip.AddrPort
	remote  netip.AddrPort
	service cm.ServiceID
	private []byte // of the peer

	response chan cm.Event // the CONNECT_RESPONSE, of an active connection
	up       chan struct{} // closed with ESTABLISHED, of a passive one
	done     chan struct{} // closed when it is over
	back     chan struct{} // closed when the QP was given back
	released chan struct{} // closed when the time-wait is over as well

	// Under the manager's lock:
	err            error // why it is over
	closed, exited bool
	returned       bool // back is closed
}

// newConn adds a connection. The caller holds mu.
func (m *Manager) newConn(id cm.ID, qp *engine.QP, s *Setup) *Conn {
	c := &Conn{
		manager: m, id: id, qp: qp, made: s.QP == nil, calls: s.calls,
		alive: uint32(s.Keepalive.Milliseconds()), response: make(chan cm.Event, 1),
		up: make(chan struct{}), done: make(chan struct{}),
		back: make(chan struct{}), released: make(chan struct{}),
	}
	m.conns[id] = c
	if c.calls != nil {
		c.calls.begin(c)
	}
	return c
}

// QP returns the queue pair.
func (c *Conn) QP() *engine.QP { return c.qp }

// LocalAddr returns our address and port. Ports of a connection to a service ID that is none of
// rdma_cm are 0.
func (c *Conn) LocalAddr() netip.AddrPort { return c.local }

// RemoteAddr returns the peer's address and port.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.remote }

// Service returns the service ID that the connection was asked for.
func (c *Conn) Service() cm.ServiceID { return c.service }

// Private returns the private data of the peer's request or answer, padded with
// zeros: 196 bytes on the active side, on the passive 56, or 92 of a service ID that is none
// of rdma_cm.
func (c *Conn) Private() []byte { return c.private }

// Extensions returns those that both ends use: of those that both offer in their QPInit all,
// with a peer that is not one of ours none.
func (c *Conn) Extensions() roce.Extensions { return c.qp.Query().Extensions }

// Done returns a channel that is closed when the connection is over: the queue
// pair is in ERR then, and Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Released returns a channel that is closed when Close was called and the
// time-wait is over: what the queue pair shared with others is free.
func (c *Conn) Released() <-chan struct{} { return c.released }

// Err says why the connection is over, nil while it is not: ErrHungUp after the
// peer's Close, ErrLargeLost if that is why, ErrClosed after our own, a *RejectedError when the
// peer takes it back,
// ErrKeepalive when it is silent; and of one whose calls are Write and the like ErrAborted
// or a *roce.WorkError. A work request of the application that fails does not end it.
func (c *Conn) Err() error {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	return c.err
}

// Close hangs up. It does not wait for the peer: what is to be known to have
// arrived must be complete before. The queue pair goes to ERR and, if the manager
// made it, is given back after the time-wait; see Released, and Destroy. It is idempotent, and
// the error is always nil: a Conn is an io.Closer.
func (c *Conn) Close() error {
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	if c.exited {
		c.release()
		return nil
	}
	c.hangUp(ErrClosed)
	return nil
}

// Destroy is Close for who wants nothing more of the queue pair: that is closed at once, whoever
// made it, and so completions of it that were not taken vanish. What is kept until the end of the
// time-wait are numbers, so many ends of connections cost little, however long they take; the
// number of the queue pair rests. It may be called after Close, and is idempotent.
func (c *Conn) Destroy() {
	c.Close()
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	_ = c.qp.Close() // never fails
	c.rest()
}

// rest gives back what is beside the queue pair, which is nothing more to the connection: until
// the end of the time-wait only numbers are kept. The caller holds mu.
func (c *Conn) rest() {
	c.giveBack()
	if m := c.manager; m.conns[c.id] == c {
		delete(m.conns, c.id)
		m.resting[c.id] = c.released
	}
}

// abort ends the connection for a reason, unless it is over.
func (c *Conn) abort(err error) {
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	if c.err == nil && !c.exited {
		c.hangUp(err)
	}
}

// hangUp ends our side and tells the peer. The caller holds the manager's lock.
func (c *Conn) hangUp(err error) {
	m := c.manager
	var why []byte
	if c.qp.Snapshot().LargeLost {
		why = largeLost
	}
	c.finish(err)
	// It is there, so this cannot be refused.
	_ = m.machine.Disconnect(m.clock.Now(), c.id, why)
	m.dispatch()
	m.wake()
}

// take handles an event of the connection. The caller holds mu.
func (c *Conn) take(e cm.Event) {
	switch e.Type {
	case cm.EventConnectResponse:
		c.private = e.Private
		c.response <- e // it has room for the one event
	case cm.EventEstablished:
		c.watch()
		close(c.up)
	case cm.EventTimewaitExit:
		delete(c.manager.conns, c.id)
		c.finish(ErrClosed)
		c.exit()
	default:
		c.finish(errorOf(e))
	}
}

// finish ends what goes over the queue pair. The caller holds mu.
func (c *Conn) finish(err error) {
	if c.err != nil {
		return
	}
	c.err = err
	// From any state to ERR: only a queue pair that is closed refuses it.
	_ = c.qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
	close(c.done)
}

// exit ends the time-wait. The caller holds mu.
func (c *Conn) exit() {
	if c.exited = true; c.closed {
		c.release()
	}
}

// release gives the queue pair back. The caller holds mu.
func (c *Conn) release() {
	if c.made {
		_ = c.qp.Close() // never fails
	}
	c.giveBack()
	close(c.released)
}

// giveBack ends what is beside the queue pair, which is closed, or the caller's. The caller holds
// mu.
func (c *Conn) giveBack() {
	if c.returned {
		return
	}
	c.returned = true
	if c.calls != nil {
		c.calls.end()
	}
	close(c.back)
}
