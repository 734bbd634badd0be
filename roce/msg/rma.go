package msg

import (
	"errors"
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/verbs"
)

// ErrUnknown says that a part of a WRITE, or an atomic, was under way on a rail that was lost: how
// much of it was done is not known, and it is not done again. A late packet could change what has
// been written since, as nothing takes the key away.
var ErrUnknown = errors.New("msg: the rail was lost, and what it did is not known")

// An RMA is an operation on memory that the peer has given us the keys of (fi_rma, fi_atomic). It
// has no message, and the peer is not told. It takes effect in no order with messages and others
// of its kind, but before it is complete. A key that the peer does not know, or not for this, ends
// the connection, as the architecture has it.
type RMA struct {
	// Opcode is OpWrite or OpRead, of any length, or OpFetchAdd or OpCmpSwap of 8 bytes at a
	// multiple of 8.
	Opcode     verbs.Opcode
	Pieces     [][]byte // what is written, or read into; of atomics where the old value goes
	Remote     Memory   // of the peer, with its keys by the numbers of its adapters
	CompareAdd uint64   // what is added, or compared with
	Swap       uint64
	User       any // the owner's

	Err error // when it is complete: nil, ErrUnknown, why there was no key, or the end

	conn    *Conn
	links   list.Link[RMA]
	state   rmaState
	size    int
	off     int    // up to where it was posted
	again   []span // what was lost with a rail
	flying  int    // work requests
	fate    error  // it ends with this when none is under way
	request Request
	local   Memory
}

// An rmaState is where an RMA stands.
type rmaState uint8

const (
	rmaIdle rmaState = iota
	rmaExposing
	rmaActive
	rmaHiding
)

// StartRMA begins an operation, which NextRMA returns when it is complete: until then its pieces
// are used. The error is ErrQueued when it is under way, ErrInvalid, or why the connection is over.
func (c *Conn) StartRMA(now clock.Time, x *RMA) error {
	size := 0
	for _, p := range x.Pieces {
		size += len(p)
	}
	switch {
	case c.over():
		return c.err
	case c.state == connEnding:
		return ErrClosed
	case x.state != rmaIdle || x.links.In():
		return ErrQueued
	case c.stream.on:
		return fmt.Errorf("%w: a stream has no memory of its own to write to", ErrInvalid)
	case size == 0 || size > MaxMessage || x.atomic() && size != 8:
		return fmt.Errorf("%w: %v of %d bytes", ErrInvalid, x.Opcode, size)
	case !x.atomic() && x.Opcode != verbs.OpWrite && x.Opcode != verbs.OpRead:
		return fmt.Errorf("%w: %v is no operation on memory of the peer", ErrInvalid, x.Opcode)
	}
	x.conn, x.state, x.Err = c, rmaExposing, nil
	x.size, x.off, x.flying, x.fate, x.again = size, 0, 0, nil, x.again[:0]
	x.request = Request{Kind: Expose, Conn: c, Pieces: x.Pieces, Size: size, asker: x}
	c.rma.open++
	c.endpoint.ask(&x.request)
	return nil
}

// NextRMA returns an operation that is complete, nil when there is none.
func (e *Endpoint) NextRMA() *RMA { return e.rmas.Pop() }

// atomic reports whether it is done once at most.
func (x *RMA) atomic() bool {
	return x.Opcode == verbs.OpFetchAdd || x.Opcode == verbs.OpCmpSwap
}

// answer is told the key of the pieces, or that it is out of use.
func (x *RMA) answer(now clock.Time, q *Request, m Memory, err error) {
	c := x.conn
	switch {
	case q.Kind == Release:
		x.finish()
	case err != nil:
		x.Err = err
		x.finish()
	default:
		x.local, x.state = m, rmaActive
		if c.over() {
			x.end(c.err)
			break
		}
		c.rma.waiting.Push(&x.links, x)
		c.wake()
	}
	c.pump(now)
}

// finish gives it back to who started it.
func (x *RMA) finish() {
	c := x.conn
	x.state = rmaIdle
	c.rma.open--
	c.endpoint.rmas.Push(&x.links, x)
}

// end takes the key of the pieces out of use: no packet of ours touches them then.
func (x *RMA) end(err error) {
	if x.state != rmaActive {
		return
	}
	x.conn.rma.waiting.Remove(&x.links)
	x.state, x.Err = rmaHiding, err
	x.request = Request{Kind: Release, Conn: x.conn, Given: x.local, asker: x}
	x.conn.endpoint.ask(&x.request)
}

// rmas are the operations of a connection.
type rmas struct {
	waiting list.List[RMA] // of which there is something to post
	open    int            // that were started and are not complete
	turn    bool           // the next part of payload is of one of these
}

// nextRMA fills in the next part of an operation.
func (c *Conn) nextRMA(r *Rail, wr *verbs.SendWR, f *flight) bool {
	x := c.rma.waiting.Pop()
	if x == nil {
		return false
	}
	most := c.stripe(x.size - x.off)
	if len(x.again) > 0 {
		most = c.endpoint.config.Chunk
	}
	at := cut(&x.again, &x.off, x.size, most)
	here, there := x.local.By(r.ours), x.Remote.By(r.theirs)
	wr.Opcode, wr.CompareAdd, wr.Swap = x.Opcode, x.CompareAdd, x.Swap
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: here.Addr + uint64(at.off), Length: uint32(at.n), LKey: here.LKey,
	})
	wr.RemoteAddr, wr.RKey = there.Addr+uint64(at.off), there.RKey
	*f = flight{kind: flightRMA, rma: x, off: at.off, n: at.n}
	x.flying++
	if x.off < x.size || len(x.again) > 0 {
		c.rma.waiting.Push(&x.links, x) // the others first
	}
	return true
}

// hasFlown counts a work request that is complete.
func (x *RMA) hasFlown() {
	x.flying--
	if x.flying == 0 && (x.fate != nil || x.off == x.size && len(x.again) == 0) {
		x.end(x.fate)
	}
}

// redo has what was lost with a rail read again. What writes is not done twice.
func (x *RMA) redo(lost span) {
	if x.Opcode == verbs.OpRead {
		x.again = append(x.again, lost)
		x.conn.rma.waiting.Push(&x.links, x)
		x.conn.endpoint.count.Inc(ChunksAgain)
	} else {
		x.fate = ErrUnknown
		x.conn.rma.waiting.Remove(&x.links)
	}
	x.hasFlown()
}

// failRMAs ends what was started. That of which the key is being made ends when it is.
func (c *Conn) failRMAs() {
	for x := c.rma.waiting.First(); x != nil; x = c.rma.waiting.First() {
		x.end(c.err)
	}
	for _, r := range c.rails {
		for f := range r.flights.all() {
			if f.kind == flightRMA {
				f.rma.end(c.err)
			}
		}
	}
}
