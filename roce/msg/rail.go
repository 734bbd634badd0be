package msg

import (
	"encoding/binary"
	"fmt"
	"iter"

	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/verbs"
)

// MaxRails is how many rails an endpoint may have.
const MaxRails = 1 + MaxFurtherRails

// A Rail is a queue pair of a connection, which has one, or several over different adapters.
// Frames and control messages take one of them, in their order; what is read and written of
// long messages takes all. See resume.go for what happens when a rail is lost.
type Rail struct {
	User any // the owner's

	conn    *Conn
	ours    uint8 // its number at this end: of the adapter
	theirs  uint8 // at the peer
	depth   int   // work requests that its send queue takes
	flights fifo[flight]
	load    int // bytes that are being read and written
	heard   clock.Time
	usage   RailUsage
	started bool // it can send
	probe   bool // it is asked whether the peer is there
	ordered bool // the peer sends or has sent frames and control messages here
	lost    bool // its queue pair is to be in the state ERR
	flushed bool // and nothing more comes from it
	links   list.Link[Rail]
}

// A RailUsage is what went by a rail.
type RailUsage struct {
	Frames     uint64 // written to slots of the peer
	FrameBytes uint64 // of these
	Control    uint64 // control messages sent
	Read       uint64 // bytes of messages
	Written    uint64 // bytes of messages, without those of frames
}

// Add adds what went by another rail.
func (u *RailUsage) Add(o RailUsage) {
	u.Frames += o.Frames
	u.FrameBytes += o.FrameBytes
	u.Control += o.Control
	u.Read += o.Read
	u.Written += o.Written
}

// Conn returns the connection.
func (r *Rail) Conn() *Conn { return r.conn }

// Several reports whether the connection may have further rails.
func (c *Conn) Several() bool { return c.several }

// Leads reports whether this end has dialled, and dials further rails.
func (c *Conn) Leads() bool { return c.leads }

// Number returns the number of the rail at this end.
func (r *Rail) Number() uint8 { return r.ours }

// Lost reports whether the rail is out of use.
func (r *Rail) Lost() bool { return r.lost || r.conn.state == connDead }

// Usage returns what went by the rail.
func (r *Rail) Usage() RailUsage { return r.usage }

// room reports whether the queue pair takes another work request.
func (r *Rail) room() bool { return r.started && !r.lost && r.flights.n < r.depth }

// AddRail adds a further rail to a connection, whose hellos had the same session as its first
// one; it takes part once it was started. The one that the peer had by the same adapter, if we
// have it still, is lost: the peer would not dial again. The error is ErrRails when the
// connection has no rails of such numbers, ErrState when we have this one already, ErrInvalid
// for a depth below MinDepth, or why the connection is over.
func (c *Conn) AddRail(now clock.Time, ours, theirs *Hello, depth int) (*Rail, error) {
	switch {
	case c.over():
		return nil, c.err
	case depth < MinDepth:
		return nil, fmt.Errorf("%w: a send queue of %d: want %d", ErrInvalid, depth, MinDepth)
	case !c.several, int(ours.Rail) >= c.endpoint.config.Rails,
		int(theirs.Rail) >= int(c.theirRails):
		return nil, ErrRails
	}
	for _, r := range c.rails {
		switch {
		case r.lost:
		case c.leads && r.ours == ours.Rail:
			return nil, ErrState
		case !c.leads && r.theirs == theirs.Rail:
			if c.lose(now, r, errReplaced); c.over() {
				return nil, c.err
			}
		}
	}
	if len(c.rails) >= maxQueuePairs {
		return nil, ErrFlood
	}
	return c.addRail(now, ours.Rail, theirs.Rail, depth), nil
}

// join makes a session known, for further rails of it.
func (e *Endpoint) join(session Token, c *Conn) {
	if e.sessions == nil {
		e.sessions = map[Token]*Conn{}
	}
	e.sessions[session] = c
}

// NewSession draws the token of a session, for the hello of who is dialled.
func (e *Endpoint) NewSession() (t Token) {
	binary.BigEndian.PutUint64(t[:], e.config.Rand.Uint64())
	binary.BigEndian.PutUint64(t[8:], e.config.Rand.Uint64())
	t[0] |= 1 // a new connection has none
	return t
}

// Session returns the connection that a further rail is for, by the hello of a peer. The error
// is ErrSession when there is none, or not any more, or it is of another service, and ErrRails when
// the peer has said that it has no such rail; it is counted.
func (e *Endpoint) Session(theirs *Hello) (*Conn, error) {
	c, err := e.sessions[theirs.Session], error(nil)
	switch {
	case c == nil || c.over() || c.ours.Service != theirs.Service:
		err = ErrSession
	case theirs.Rail >= c.theirRails:
		err = ErrRails
	default:
		return c, nil
	}
	e.count.Inc(RailsRefused)
	return nil, err
}

// maxQueuePairs is how many queue pairs a connection may have: those of its rails, and as many
// that are lost and from which something may still come.
const maxQueuePairs = 2 * MaxRails

func (c *Conn) addRail(now clock.Time, ours, theirs uint8, depth int) *Rail {
	r := &Rail{conn: c, ours: ours, theirs: theirs, depth: depth, heard: now}
	c.rails = append(c.rails, r)
	c.endpoint.timers.Stop(&c.stranded)
	return r
}

// Start says that the queue pair can send.
func (r *Rail) Start(now clock.Time) {
	c := r.conn
	if c.over() || r.lost {
		return
	}
	r.started = true
	c.tryResume(now)
	c.wake()
}

// Lose says that the peer has hung up this rail, or that its adapter is gone. The connection is
// over if it has no other, and none comes back in time.
func (r *Rail) Lose(now clock.Time, err error) {
	if !r.conn.several {
		r.conn.fail(now, err)
		return
	}
	r.conn.lose(now, r, err)
}

// Gone says that the queue pair of a rail is closed: no completion of it comes any more.
func (r *Rail) Gone(now clock.Time) {
	c := r.conn
	if c.over() {
		return
	}
	c.lose(now, r, ErrClosed)
	for r.flights.n > 0 && !c.over() {
		f := r.flights.pop()
		c.redo(r, &f)
	}
	r.flushed = true
	c.drained(now, r)
	c.pump(now)
}

// survives reports whether a connection may go on by another rail after an error: that of a
// path or of a peer that is silent, not one of what was asked for.
func survives(s verbs.Status) bool {
	return s == verbs.StatusRetryExcErr || s == verbs.StatusRNRRetryExc ||
		s == verbs.StatusWRFlushErr
}

// lose takes a rail out of use. What was under way there comes back with errors, and is done
// again by another one.
func (c *Conn) lose(now clock.Time, r *Rail, err error) {
	if r.lost || c.state == connDead {
		return
	}
	r.lost, r.probe = true, false
	c.endpoint.lost.Push(&r.links, r)
	c.endpoint.count.Inc(RailsLost)
	ordered := c.unseat(r)
	switch grace := c.endpoint.config.Grace; {
	case ordered && (c.state == connBroken || c.allSaid()):
		c.fail(now, err)
	case c.Alive():
		c.wake()
	case grace > 0 && !c.allSaid():
		c.strandedBy = err
		c.endpoint.timers.Set(&c.stranded, now+grace)
	default:
		c.fail(now, err)
	}
}

// Alive reports whether a rail is in use.
func (c *Conn) Alive() bool {
	for range c.live() {
		return true
	}
	return false
}

// live goes through the rails that are in use.
func (c *Conn) live() iter.Seq[*Rail] {
	return func(yield func(*Rail) bool) {
		for _, r := range c.rails {
			if !r.lost && !yield(r) {
				return
			}
		}
	}
}

// drained forgets a rail that is lost when nothing comes from it any more: no packet of it
// touches memory here, and what it brought was looked at.
func (c *Conn) drained(now clock.Time, r *Rail) {
	if !r.lost || !r.flushed || r.flights.n > 0 || c.over() {
		return
	}
	for i, other := range c.rails {
		if other == r {
			c.rails = append(c.rails[:i], c.rails[i+1:]...)
			c.fenced(now, r)
			return
		}
	}
}

// flying is how many work requests are not complete.
func (c *Conn) flying() int {
	n := 0
	for _, r := range c.rails {
		n += r.flights.n
	}
	return n
}

// Rails goes through the rails of a connection, also those that are lost as long as something
// may come from them.
func (c *Conn) Rails() iter.Seq[*Rail] {
	return func(yield func(*Rail) bool) {
		for _, r := range c.rails {
			if !yield(r) {
				return
			}
		}
	}
}

// NextLost returns a rail that is out of use, nil when there is none. Its queue pair must go to
// the state ERR at once, unless it is there; what comes from it until it is closed is handed
// over as before, then Rail.Gone is called. Of a connection that is over NextClosed alone tells.
func (e *Endpoint) NextLost() *Rail { return e.lost.Pop() }
