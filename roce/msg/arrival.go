package msg

import (
	"xroce/roce/clock"
	"xroce/roce/msg/match"
)

// arrivalCost is about what is kept of a message beside its data, in bytes.
const arrivalCost = 512

// keptData is the longest memory of a message that is kept for a later one.
const keptData = 4096

type arrivalKind uint8

const (
	arrivalEager     arrivalKind = iota // it is here
	arrivalAnnounced                    // an RTS said that there is one
)

// An arrival is a message of a peer, from when it came or was announced until it is received.
type arrival struct {
	node  match.Message[Receive, arrival]
	links link[*arrival]
	conn  *Conn
	kind  arrivalKind
	tag   uint64
	// length is that of the message, data is it when it came before it was wanted.
	length uint64
	data   []byte

	claim uint64 // who has taken it out of the matcher, 0 for nobody

	sync   bool // the sender wants to be told that it was matched, by the place where it was
	frame  uint32
	record int

	// Of one that was announced:
	id      uint32
	hasKey  bool // local is in use
	flags   Flags
	remote  Memory // the sender's
	receive *Receive
	want    int // bytes that fit the receive
	asked   int // of these, those that the sender was asked for
	done    int // and that are here
	local   Memory
	request Request
	status  Status
	way     Protocol
}

func (a *arrival) chain() *link[*arrival] { return &a.links }

// newArrival returns one for a message of a peer.
func (e *Endpoint) newArrival(c *Conn) *arrival {
	a := e.spare.pop()
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
	e.spare.push(a)
}

// deliver copies a message that is here to the receive that it has, and ends both.
func (e *Endpoint) deliver(a *arrival, r *Receive, data []byte) {
	r.Length = scatter(r.Pieces, 0, data)
	e.count.Add(BytesCopiedIn, r.Length)
	r.Protocol = Eager
	a.conn.sayMatched(a)
	e.hand(a, r, nil)
}

// sayMatched tells the sender of a message that it was matched, if it wants that.
func (c *Conn) sayMatched(a *arrival) {
	if a.sync {
		c.say(Control{Type: TypeMatched, ID: a.frame, Number: uint16(a.record)})
	}
}

// hand gives a receive back to who asked, and is done with its message.
func (e *Endpoint) hand(a *arrival, r *Receive, err error) {
	r.Err, r.Whole, r.SentTag, r.Source = err, int(a.length), a.tag, a.conn
	if r.Truncated = err == nil && a.length > uint64(r.Length); r.Truncated {
		e.count.Inc(Truncated)
	}
	e.received.push(r)
	e.retireArrival(a)
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
		e.unblock(now, r.From)
		return nil
	case a.kind == arrivalEager:
		e.deliver(a, r, a.data)
		e.unblock(now, nil)
	default:
		e.begin(a, r)
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
	e.received.push(r)
	return true
}
