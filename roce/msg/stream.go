package msg

import (
	"io"

	"xroce/roce/clock"
	"xroce/roce/internal/timer"
)

// A stream is what a connection of ServiceStream has beside slots: bytes instead of messages.
// Who writes fills our copy of a slot and who reads empties the peer's slot, in place, without
// a copy here: a piece of a slot is lent to each of both, one at a time, and may be used
// outside of all locks.
//
// Long writes have large slots made, as long messages have, but do not wait for them. A frame
// stays in its slot until it was read, so a reader that does not read stops the writer, and
// neither end holds more than slots.
type stream struct {
	on bool

	// Of the writer:
	lender    *lane    // a slot of which is lent, nil for none
	lentRing  *outRing // the slot's
	abandoned bool     // what is written there is not sent
	orphan    bool     // and the slots are of no use but for that
	long      bool     // who asked last for a slot has more than a small one takes

	// Of the reader:
	rest   []byte // of the record that is read
	peeked bool   // it is lent
	hungUp bool   // nobody reads any more
	linger timer.Timer

	moved bool // is in Endpoint.moved
}

func (s *stream) init(c *Conn) {
	s.on = true
	s.linger.Run = func(now clock.Time) { c.fail(now, ErrClosed) }
}

// lent reports whether somebody writes into a slot.
func (s *stream) lent() bool { return s.lender != nil }

// Reserve lends memory that goes to the peer next, until Commit, which is to come soon: a slot,
// fewer than n bytes when that is shorter, or the rest of a slot that has been begun. It returns
// nil without an error when there is none now; see Endpoint.NextMoved. The error is ErrClosed
// after Close, ErrQueued when there is memory lent already, or why the connection is over.
func (c *Conn) Reserve(now clock.Time, n int) ([]byte, error) { return c.lend(now, n, false) }

// ReserveSlot is Reserve for who fills memory slowly: it lends a whole slot, which nothing
// waits for but what is written to the stream later. It is a large one if there is one and n
// bytes have no room in a small one.
func (c *Conn) ReserveSlot(now clock.Time, n int) ([]byte, error) { return c.lend(now, n, true) }

func (c *Conn) lend(now clock.Time, n int, whole bool) ([]byte, error) {
	s := &c.stream
	switch {
	case !s.on:
		return nil, ErrInvalid
	case c.over():
		return nil, c.err
	case c.state == connEnding:
		return nil, ErrClosed
	case s.lent():
		return nil, ErrQueued
	case !c.announced:
		return nil, nil
	}
	if s.long = n > c.lanes[small].ring.payload(); s.long {
		c.enlarge(now)
	}
	if whole || c.open.lane == nil || c.open.writer.Room() < n {
		c.closeFrame()
		l := c.laneOfStream()
		if l == nil {
			c.wake()
			return nil, nil
		}
		c.openFrame(now, l)
	}
	s.lender, s.lentRing = c.open.lane, c.open.ring
	return c.open.writer.Payload(), nil
}

// enlarge has large slots made, unless there are some or there will be none.
func (c *Conn) enlarge(now clock.Time) {
	size := c.classes()[0]
	switch {
	case c.lanes[large].ring != nil, c.asking.refused != 0,
		size <= c.lanes[small].ring.payload(), c.endpoint.config.Policy == EnlargeNever,
		c.agreed.Capabilities&CapabilityProvision == 0:
	default:
		c.provision(now, size)
	}
}

// laneOfStream returns a lane with a free slot for who asked last, nil when there is none. What is
// long waits for a large slot as soon as there are any: they are free again when half of them were
// read, and the same bytes in small ones are a frame, a completion and a credit for each packet.
func (c *Conn) laneOfStream() *lane {
	l := &c.lanes[small]
	if other := &c.lanes[large]; c.stream.long && other.ring != nil || l.free() == 0 {
		l = other
	}
	if l.free() == 0 {
		return nil
	}
	return l
}

// Commit sends the first n bytes of what was lent, and takes it back. The error says that they
// are not sent: ErrClosed or why the connection is over.
func (c *Conn) Commit(now clock.Time, n int) error {
	s := &c.stream
	if !s.lent() {
		return ErrInvalid
	}
	ring, abandoned, orphan := s.lentRing, s.abandoned, s.orphan
	s.lender, s.lentRing, s.abandoned, s.orphan = nil, nil, false, false
	if orphan {
		c.endpoint.giveBack(c, ring.stage)
	}
	if c.over() {
		return c.err
	}
	if !abandoned && n > 0 {
		c.open.writer.Append(&RecordHeader{Type: RecordEager, Len: uint32(n)})
	}
	if o := c.offered; o != nil && o.ring.stage.Bytes != nil {
		o.use(now)
	}
	c.pump(now)
	if abandoned {
		return ErrClosed
	}
	return nil
}

// holdsLast reports whether the last word has to wait for bytes that are being written. A slot
// of which nothing is used yet is left instead.
func (c *Conn) holdsLast() bool {
	s := &c.stream
	if !s.lent() || s.abandoned {
		return false
	}
	if c.open.writer.Records() > 0 {
		return true
	}
	s.abandoned = true
	c.abandonFrame()
	return false
}

// holdsOut reports whether somebody writes into our copy of slots, which is given back after that.
func (s *stream) holdsOut(r *outRing) bool {
	s.orphan = s.orphan || s.lentRing == r
	return s.lentRing == r
}

// holdsIn reports whether somebody reads in slots.
func (s *stream) holdsIn() bool { return s.peeked }

// advance goes to the next byte that came, and gives back the slots before it.
func (c *Conn) advance() {
	s := &c.stream
	for len(s.rest) == 0 && c.arrivals.n > 0 {
		a := c.arrivals.head()
		if a.ring == nil {
			c.arrivals.pop()
			c.finished = true
			continue
		}
		var rec Record
		switch {
		case a.records.Next(&rec):
			if rec.Type != RecordEager || rec.Flags != 0 || rec.Tag != 0 || rec.Len == 0 {
				a.records.fail(ErrType)
				c.broken(ErrType)
				return
			}
			s.rest = rec.Payload
		case a.records.Err() != nil:
			c.broken(a.records.Err())
			return
		default:
			c.release(c.arrivals.pop().ring)
		}
	}
	c.tellCredit()
}

// Peek lends the next bytes of the peer, until Consume. It returns nil without an error when
// there are none now; see Endpoint.NextMoved. After all of them the error is io.EOF if the
// peer has closed its end, else why the connection is over. It is ErrClosed after HangUp,
// ErrQueued when bytes are lent already.
func (c *Conn) Peek() ([]byte, error) {
	s := &c.stream
	switch {
	case !s.on:
		return nil, ErrInvalid
	case s.hungUp:
		return nil, ErrClosed
	case s.peeked:
		return nil, ErrQueued
	case len(s.rest) > 0:
		s.peeked = true
		return s.rest, nil
	case c.finished:
		return nil, io.EOF
	case c.over():
		return nil, c.err
	}
	return nil, nil
}

// Consume takes back what was lent, of which the first n bytes are read.
func (c *Conn) Consume(now clock.Time, n int) {
	s := &c.stream
	s.rest, s.peeked = s.rest[n:], false
	if s.hungUp {
		s.rest = nil
	} else {
		c.advance()
	}
	if c.state == connDead {
		if s.hungUp || c.arrivals.n == 0 {
			c.freeIn()
		}
		return
	}
	c.closeIfDone(now)
}

// HangUp closes a stream for both directions: what was written is sent, nothing is read any
// more. NextClosed tells when the peer has it, after the time linger in any case. The peer can
// read all of it, but not write any more.
func (c *Conn) HangUp(now clock.Time, linger clock.Time) {
	s := &c.stream
	if s.hungUp {
		return
	}
	s.hungUp = true
	if c.state == connDead {
		c.freeIn()
		return
	}
	c.endpoint.timers.Set(&s.linger, now+linger)
	c.Close(now)
	c.closeIfDone(now)
}

// Readable reports whether Peek returns something.
func (c *Conn) Readable() bool {
	return len(c.stream.rest) > 0 || c.finished || c.over()
}

// Writable reports whether Reserve returns something, of a slot that was not begun, for as many
// bytes as were asked for last.
func (c *Conn) Writable() bool { return c.state != connOpen || c.laneOfStream() != nil }

// stir notes that a stream may go on.
func (c *Conn) stir() {
	if s := &c.stream; s.on && !s.moved {
		s.moved = true
		c.endpoint.moved.push(c)
	}
}

// NextMoved returns a stream of which Readable or Writable may have changed, nil when there is
// none.
func (e *Endpoint) NextMoved() *Conn {
	if e.moved.n == 0 {
		return nil
	}
	c := e.moved.pop()
	c.stream.moved = false
	return c
}
