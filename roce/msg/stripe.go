package msg

// What is read and written of long messages goes by all rails of a connection, in parts: whoever
// has the least under way takes the next one, so a rail that is twice as fast carries twice as
// much.

// Bounds of parts.
const (
	// minStripe is what a part of a message has at least, so that short ones are not cut up.
	minStripe = 32 << 10
	// railChunks is how many parts of full length a rail of several has under way.
	railChunks = 4
)

// A span is bytes of a message, from a place on.
type span struct{ off, n int }

// emptiest is the rail that takes the next part, nil when all have enough.
func (c *Conn) emptiest() *Rail {
	if !c.several {
		if c.control.room() {
			return c.control
		}
		return nil
	}
	var least *Rail
	for _, r := range c.rails {
		if r.room() && r.load < railChunks*c.endpoint.config.Chunk &&
			(least == nil || r.load < least.load) {
			least = r
		}
	}
	return least
}

// stripe is how many bytes are read or written at once, of those that are left: the fewer, the
// shorter, so that all rails are done about the same time.
func (c *Conn) stripe(left int) int {
	n := min(left, c.endpoint.config.Chunk)
	if !c.several {
		return n
	}
	rails := 0
	for range c.live() {
		rails++
	}
	return min(n, max(minStripe, (left+rails-1)/max(rails, 1)))
}

// cut takes the next part of a message, of most bytes at most: of what was lost with a rail
// first, then of what is between next and end.
func cut(again *[]span, next *int, end, most int) span {
	if k := len(*again) - 1; k >= 0 {
		s := &(*again)[k]
		part := span{s.off, min(s.n, most)}
		if s.off, s.n = s.off+part.n, s.n-part.n; s.n == 0 {
			*again = (*again)[:k]
		}
		return part
	}
	part := span{*next, min(end-*next, most)}
	*next += part.n
	return part
}

// redo has what was under way on a rail that is lost done again. Frames and control messages
// wait for the RESUME of the peer.
func (c *Conn) redo(r *Rail, f *flight) {
	r.load -= f.n
	lost := span{f.off, f.n}
	switch f.kind {
	case flightFrame:
		c.framesFlying--
	case flightWrite:
		s := f.send
		s.flying--
		switch {
		case s.state == sendWriting:
			s.again = append(s.again, lost)
			c.puts.Push(&s.links, s)
			c.endpoint.count.Inc(ChunksAgain)
		case s.state == sendEnding && s.flying == 0:
			c.hide(s)
		}
	case flightRMA:
		f.rma.redo(lost)
	case flightRead:
		e := c.endpoint
		e.pulling -= f.n
		c.pulling -= f.n
		f.pull.again = append(f.pull.again, lost)
		c.pulls.Push(&f.pull.links, f.pull)
		e.count.Inc(ChunksAgain)
		e.unthrottle()
	}
	c.wake()
}
