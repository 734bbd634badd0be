package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/msg/match"
)

// An inSlot is the message of a peer that stays in its slot, with all behind it: it is not
// expected and nothing more may be kept of the peer, or its handler does not take it now.
//
// Endpoint.slots finds it by its tag, as the matcher of messages that are kept does: a receive
// that is posted looks at no peer whose message does not fit. It has no receives.
type inSlot struct {
	peer match.Peer[Receive, Conn]
	head match.Message[Receive, Conn] // while it waits for a receive
	busy list.Link[Conn]              // while it waits for its handler
}

// init makes it ready.
func (s *inSlot) init(c *Conn) error {
	s.head.Init(c)
	return c.endpoint.slots.Add(&s.peer)
}

// await has the message that arrived first, and was not taken, wait for a receive. It keeps its
// place among those of other peers if it waits already.
func (c *Conn) await(tag uint64) {
	e, s := c.endpoint, &c.slot
	e.busy.Remove(&s.busy)
	if s.head.Queued() {
		return
	}
	if _, err := e.slots.Arrive(&s.head, &s.peer, tag, 0); err != nil {
		c.broken(err)
	}
}

// awaitHandler has it wait until Endpoint.Resume.
func (c *Conn) awaitHandler() {
	c.endpoint.slots.Withdraw(&c.slot.head)
	c.endpoint.busy.Push(&c.slot.busy, c)
}

// goOn says that nothing waits, or no longer what did: the next one has its turn behind those of
// other peers.
func (c *Conn) goOn() {
	if s := &c.slot; s.head.Queued() || s.busy.In() {
		c.endpoint.slots.Withdraw(&s.head)
		c.endpoint.busy.Remove(&s.busy)
	}
}

// retry looks again at what waits: there is room for it, perhaps.
func (c *Conn) retry(now clock.Time) {
	if c.slot.head.Queued() {
		c.process(now)
	}
}

// offer gives a receive that was just posted to the message that has waited for it for longest
// in its slot, if there is one. No more than that one can go on.
func (e *Endpoint) offer(now clock.Time, r *Receive) {
	var from *match.Peer[Receive, Conn]
	if r.From != nil {
		from = &r.From.slot.peer
	}
	if c := e.slots.Probe(r.Tag, r.Mask, from); c != nil {
		c.process(now)
	}
}

// Resume calls handlers again that have said StatusBusy, once each peer that waits for one.
func (e *Endpoint) Resume(now clock.Time) {
	for range e.busy.Len() {
		c := e.busy.Pop()
		if c == nil {
			return
		}
		c.process(now)
	}
}
