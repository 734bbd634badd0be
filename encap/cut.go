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
	if len(c.rest) == 0 {
		return 0
	}
	header, n := c.t.Format.Spec().HeaderLen, len(c.rest)
	if !c.one {
		header, n = c.t.segmentHeader(), min(n, c.size)
	}
	copy(frame[header:], c.rest[:n])
	c.rest = c.rest[n:]
	c.next.More = len(c.rest) > 0
	total := c.t.wrap(frame, c.kind, header, n, c.next)
	c.next.Index++
	return total
}
