package msg

import "slices"

// This file is about messages that came whole and outlive their connection: a peer may send and
// hang up before anybody asks. Nobody may ever ask, and peers may do it again and again, so there
// are bounds for all of them together.

const (
	// leftPeers is of how many peers as much may be kept as Config.Unexpected allows each.
	leftPeers = 64
	// leftLeast is the least that may be kept, however small that is.
	leftLeast = 4 << 20
	// leftCost is about what is kept of a connection beside its messages, in bytes.
	leftCost = 4096
)

// left is what is kept of a connection that is over, in bytes.
func (c *Conn) left() int64 {
	messages, bytes := c.source.Unexpected()
	if messages == 0 {
		return 0
	}
	return leftCost + int64(messages)*arrivalCost + int64(bytes)
}

// leave keeps the messages of a connection that is over until somebody asks for them, or those of
// others need the room: the connections that ended first give way.
func (e *Endpoint) leave(c *Conn) {
	n := c.left()
	if n == 0 {
		return
	}
	e.over = append(e.over, c)
	e.left += n
	most := max(leftPeers*int64(e.config.Unexpected), leftLeast)
	if e.left <= most {
		return
	}
	e.left = 0 // some were received since
	e.over = slices.DeleteFunc(e.over, func(c *Conn) bool {
		n := c.left()
		e.left += n
		return n == 0
	})
	gone := 0
	for ; e.left > most; gone++ {
		e.left -= e.over[gone].left()
		e.drop(e.over[gone])
	}
	e.over = slices.Delete(e.over, 0, gone)
}

// drop forgets the messages of a connection that is over.
func (e *Endpoint) drop(c *Conn) {
	// It is known, as long as it has messages, and may be again.
	_ = e.match.Forget(&c.source, func(a *arrival) {
		e.count.Inc(DroppedLate)
		e.retireArrival(a)
	}, func(*Receive) {})
	_ = e.match.Add(&c.source)
}
