package msg

import "xroce/engine/internal/notify"

// An alarm is a descriptor that says that something has happened. It is guarded by the endpoint's
// lock.
type alarm struct {
	on      bool
	rung    bool
	closed  bool
	seen    uint64 // unexpected messages that it was rung for
	signal  notify.Signal
	happens bool // now
}

// EventFD returns a descriptor to sleep on in poll(2), epoll or a loop of one's own
// (ucp_worker_get_efd): it polls as readable from when something has happened until TakeEvents.
// That is: a send or a receive is complete, a message came that no receive was there for, or a
// connection, or the endpoint, is over. The descriptor is readable at first. So none is missed by
// who looks after each TakeEvents at all that it waits for, without waiting:
//
//	for { // fd polls as readable
//		endpoint.TakeEvents()
//		// Now look at what is Done, at TryClaim, and at Conn.Err.
//	}
//
// It is for polling alone: the endpoint reads it, and Close closes it. Streams and what a Listener
// accepts have none. The error is ErrClosed, or errors.ErrUnsupported where the system has no
// eventfd.
func (e *Endpoint) EventFD() (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &e.alarm
	switch {
	case a.closed:
		return -1, ErrClosed
	case a.on:
		return a.signal.FD(), nil
	}
	a.signal = notify.New()
	if err := a.signal.Open(0); err != nil {
		return -1, err
	}
	a.on = true
	a.ring()
	return a.signal.FD(), nil
}

// TakeEvents reports whether something has happened since it was called last, and has the
// descriptor of EventFD not be readable until something happens again.
func (e *Endpoint) TakeEvents() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	a := &e.alarm
	if !a.rung || a.closed {
		return false
	}
	a.rung = false
	a.signal.Lower(1)
	return true
}

// ring makes the descriptor readable, if there is one.
func (a *alarm) ring() {
	if a.on && !a.rung && !a.closed {
		a.rung = true
		a.signal.Raise()
	}
}

// check rings when something has happened of what progress has seen.
func (a *alarm) check(unexpected uint64) {
	if a.happens || unexpected != a.seen {
		a.happens, a.seen = false, unexpected
		a.ring()
	}
}

// close gives the descriptor back.
func (a *alarm) close() error {
	if a.closed = true; !a.on {
		return nil
	}
	return a.signal.Close()
}
