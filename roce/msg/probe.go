package msg

import "xroce/roce/clock"

// A Message is one that came and has no receive.
type Message struct {
	Tag    uint64
	Length int
	From   *Conn

	arrival *arrival
	claim   uint64
}

// message describes an arrival.
func (a *arrival) message() Message {
	return Message{Tag: a.tag, Length: int(a.length), From: a.conn, arrival: a, claim: a.claim}
}

// Probe returns the message that a receive with these values would take now, and leaves it there:
// another receive may take it. It reports whether there is one. A message that waits in its slot
// because too many are unexpected is not seen.
func (e *Endpoint) Probe(tag, mask uint64, from *Conn) (Message, bool) {
	a := e.match.Probe(tag, mask, from.peer())
	if a == nil {
		return Message{}, false
	}
	return a.message(), true
}

// Claim is Probe that takes the message out: it is for ReceiveClaimed alone, and must be given to
// it. Its sender cannot cancel it any more.
func (e *Endpoint) Claim(now clock.Time, tag, mask uint64, from *Conn) (Message, bool) {
	a := e.match.Claim(tag, mask, from.peer())
	if a == nil {
		return Message{}, false
	}
	e.claims++
	a.claim = e.claims
	m := a.message()
	a.conn.retry(now) // there is room for one more
	return m, true
}

// ReceiveClaimed receives a message that was claimed. Tag, Mask and From of r do not matter. The
// error is ErrQueued when r is under way, ErrInvalid of a message that was not claimed or was
// received, or why the connection is over, when that took the message with it.
func (e *Endpoint) ReceiveClaimed(m *Message, r *Receive) error {
	a := m.arrival
	switch {
	case r.busy():
		return ErrQueued
	case a == nil || a.claim == 0 || a.claim != m.claim:
		return ErrInvalid
	}
	a.claim = 0
	r.reset()
	switch {
	case a.kind == arrivalEager:
		e.deliverKept(a, r)
	case a.conn.state == connDead:
		err := a.conn.err
		e.retireArrival(a)
		return err
	default:
		e.begin(a, r)
	}
	return nil
}
