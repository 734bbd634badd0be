package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/msg/match"
)

// arrivalCost is about what is kept of a message beside its data, in bytes.
const arrivalCost = 512

// keptData is the longest memory of a message that is kept for a later one, maxSpare for how many:
// those that one peer may leave here by default, so that it costs no memory to have them again.
const (
	keptData = 2048
	maxSpare = unexpectedBytes / arrivalCost
)

type arrivalKind uint8

const (
	arrivalEager     arrivalKind = iota // it is here
	arrivalAnnounced                    // an RTS said that there is one
)

// An arrival is a message of a peer, from when it came or was announced until it is received.
type arrival struct {
	node  match.Message[Receive, arrival]
	links list.Link[arrival]
	conn  *Conn
	kind  arrivalKind
	tag   uint64
	// length is that of the message, data is it when it came before it was wanted.
	length uint64
	data   []byte

	claim uint64 // who has taken it out of the matcher, 0 for nobody

	way    Protocol // by which it came
	sync   bool     // the sender wants to be told that it was matched, by the place where it was
	frame  uint32
	record int

	// Of one that was announced:
	id      uint32
	hasKey  bool // local is in use
	flags   Flags
	remote  Memory // the sender's
	receive *Receive
	want    int    // bytes that fit the receive
	asked   int    // of these, those that the sender was asked for
	done    int    // and that are here
	again   []span // those that were lost with a rail
	local   Memory
	request Request
	status  Status
	err     error      // why it could not be stored
	mark    int        // bytes that were here when it was looked at, see lookAfter
	markAt  clock.Time // since when it has as many, 0 for not known
}

// newArrival returns one for a message of a peer.
func (e *Endpoint) newArrival(c *Conn) *arrival {
	a := e.spare.Pop()
	if a == nil {
		a = &arrival{}
		a.node.Init(a)
	}
	a.conn = c
	return a
}

// retireArrival keeps one for a later message.
func (e *Endpoint) retireArrival(a *arrival) {
	node, data := a.node, a.data[:0]
	if cap(data) > keptData {
		data = nil
	}
	*a = arrival{node: node, data: data}
	if e.spare.Len() < maxSpare {
		e.spare.Push(&a.links, a)
	}
}

// deliver copies a message that is here to the receive that it has, and gives that back to who
// asked. It came by that protocol.
func (e *Endpoint) deliver(c *Conn, r *Receive, way Protocol, tag uint64, data []byte) {
	r.Protocol, r.SentTag, r.Whole, r.Source = way, tag, len(data), c
	if e.placeMessage(c, r, data) {
		e.hand(c, r, tag, uint64(len(data)), nil)
	}
}

// deliverKept is deliver of a message that waited, and is done with it.
func (e *Endpoint) deliverKept(a *arrival, r *Receive) {
	if a.sync {
		a.conn.sayMatched(a.frame, a.record)
	}
	e.deliver(a.conn, r, a.way, a.tag, a.data)
	e.retireArrival(a)
}

// sayMatched tells the sender of a message that it was matched: one that wants that.
func (c *Conn) sayMatched(frame uint32, record int) {
	c.say(Control{Type: TypeMatched, ID: frame, Number: uint16(record)})
}

// hand gives a receive back to who asked, with a message of so many bytes, or a part of it.
func (e *Endpoint) hand(c *Conn, r *Receive, tag, whole uint64, err error) {
	r.Err, r.Whole, r.SentTag, r.Source = err, int(whole), tag, c
	if r.Truncated = err == nil && whole > uint64(r.Length); r.Truncated {
		e.count.Inc(Truncated)
	}
	e.received.Push(&r.links, r)
}

// Receive asks for a message, of which it takes the first one that fits. r must not be
// waiting already.
func (e *Endpoint) Receive(now clock.Time, r *Receive) error {
	if r.busy() {
		return ErrQueued
	}
	r.reset()
	a, err := e.match.Post(&r.node, r.Tag, r.Mask, r.From.peer())
	switch {
	case err != nil:
		return err
	case a == nil && r.From != nil && r.From.state == connDead && r.From.arrivals.n == 0:
		e.match.Cancel(&r.node)
		return r.From.err
	case a == nil:
		e.offer(now, r)
		return nil
	case a.kind == arrivalEager:
		c := a.conn
		e.deliverKept(a, r)
		c.retry(now)
	default:
		c := a.conn
		e.begin(a, r)
		c.retry(now)
	}
	return nil
}

// Cancel takes a receive back, and reports whether it was still waiting: it is complete then,
// with ErrCancelled.
func (e *Endpoint) Cancel(r *Receive) bool {
	if !e.match.Cancel(&r.node) {
		return false
	}
	r.Err = ErrCancelled
	e.received.Push(&r.links, r)
	return true
}
