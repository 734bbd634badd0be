package encap

// A Cut makes the packets of one datagram: one where it has room, and else as many segments as
// it takes.
type Cut struct {
	t    *Template
	kind Kind
	rest []byte
	next Segment
	size int // of all pieces but the last
	one  bool
}

// Cut begins with a datagram, which must not change until the last packet is made. id tells
// the datagrams of a sender apart while their segments are under way: it is to be one more for
// each.
func (t *Template) Cut(k Kind, datagram []byte, id uint16) (Cut, Reason) {
	if r := t.check(k, datagram, t.Largest(k)); r != OK {
		return Cut{}, r
	}
	c := Cut{t: t, kind: k, rest: datagram, one: true}
	if len(datagram) > t.Max(k) {
		c.one, c.next.ID, c.size = false, id, t.piece()
	}
	return c, OK
}

// Packets is how many are still to be made.
func (c *Cut) Packets() int {
	switch {
	case len(c.rest) == 0:
		return 0
	case c.one:
		return 1
	}
	return (len(c.rest) + c.size - 1) / c.size
}

// Next writes the next packet and returns its length, 0 when there is none. frame must have
// the Room of the template.
func (c *Cut) Next(frame []byte) int {
	header, s, piece := c.take()
	if len(piece) == 0 {
		return 0
	}
	copy(frame[header:], piece)
	return c.t.wrap(frame, c.kind, header, len(piece), s)
}

// MaxTail is the most bytes that NextParts writes behind a piece.
const MaxTail = vnicAlign

// NextParts writes what is before and behind the next piece of the datagram, for who sends a
// list of pieces of memory, and copies nothing: how many bytes of head and tail are to go
// before and behind the piece, which is a part of the datagram and empty when there is none.
// head must have the HeaderLen of the format, tail MaxTail. Native packets cannot be made so,
// because their VCRC is over all bytes: it panics.
func (c *Cut) NextParts(head, tail []byte) (before int, piece []byte, behind int) {
	if c.t.Format <= RawGRH {
		panic("encap: a native packet in parts")
	}
	before, s, piece := c.take()
	if len(piece) == 0 {
		return 0, nil, 0
	}
	c.t.putHeader(head, c.kind, s)
	return before, piece, c.t.putTail(tail, before+len(piece))
}

// take takes the next piece, with the length of the headers before it.
func (c *Cut) take() (header int, s Segment, piece []byte) {
	header, n := c.t.Format.Spec().HeaderLen, len(c.rest)
	if !c.one {
		header, n = c.t.segmentHeader(), min(n, c.size)
	}
	piece, c.rest = c.rest[:n], c.rest[n:]
	c.next.More = len(c.rest) > 0
	s = c.next
	c.next.Index++
	return header, s, piece
}
