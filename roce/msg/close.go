package msg

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/verbs"
)

// Close sends what was posted, says goodbye and takes no more messages to send. NextClosed
// tells when the peer has all of it.
func (c *Conn) Close(now clock.Time) {
	if c.state == connOpen {
		c.state = connEnding
		c.pump(now)
	}
}

// Abort ends the connection at once: everything that is under way fails with err.
func (c *Conn) Abort(now clock.Time, err error) { c.fail(now, err) }

// sayLast says goodbye once everything else is said, and the peer has no more to say of it: what
// is behind may end the connection.
func (c *Conn) sayLast() {
	if c.holdsLast() {
		return
	}
	if c.saidLast || c.fragments.Len() > 0 || c.puts.Len() > 0 || c.announcedSends() > 0 ||
		len(c.syncs) > 0 || c.rma.open > 0 {
		return
	}
	c.saidLast = true
	c.sayInOrder(Control{Type: TypeFIN})
}

// closeIfDone ends the connection in order once both ends have said all, and all of ours has
// arrived; or of a stream that nobody reads any more, once all of ours has.
func (c *Conn) closeIfDone(now clock.Time) {
	if c.over() || !c.saidLast || c.out.n > 0 || c.flying() > 0 || c.resume.underWay {
		return
	}
	if c.stream.hungUp || c.finished && c.allSaid() {
		c.fail(now, ErrClosed)
	}
}

// allSaid reports whether both ends have said all, and nobody waits for anything. The peer may
// hang up then: what is still on its way there, as slots that are free again, it needs no more.
// Who reads a stream may be behind with that.
func (c *Conn) allSaid() bool {
	heard := c.finished && c.arrivals.n == 0 || c.stream.on && c.heardLast
	return c.saidLast && heard && c.allLanded()
}

// allLanded reports whether the peer has taken out all messages, also those whose senders were
// told long ago, and whether it has said what was asked of it.
func (c *Conn) allLanded() bool {
	for i := range c.lanes {
		if l := &c.lanes[i]; l.freed != l.written {
			return false
		}
	}
	return len(c.syncs) == 0 && c.announcedSends() == 0
}

// announcedSends is how many messages were announced and have not ended.
func (c *Conn) announcedSends() int {
	n := 0
	for _, s := range c.sends {
		if s != nil {
			n++
		}
	}
	return n
}

// broken ends the connection because the peer broke the protocol. It is told before; until that
// is done, nothing that a packet may still name is given back.
func (c *Conn) broken(err error) {
	if c.over() {
		return
	}
	if errors.Is(err, ErrQuota) {
		c.endpoint.count.Inc(QuotaEnds)
		c.part(c.heard, err, StatusQuota)
		return
	}
	c.endpoint.count.Inc(ProtocolErrors)
	c.part(c.heard, &PeerError{Err: err}, StatusProtocolError)
}

// part ends the connection once the peer was told why.
func (c *Conn) part(now clock.Time, err error, why Status) {
	if c.control == nil || !c.control.started {
		c.fail(now, err)
		return
	}
	c.wake()
	c.state, c.err, c.farewell, c.why = connBroken, err, true, why
	c.goOn()
	c.endpoint.timers.Set(&c.goodbye, now+c.endpoint.config.Patience)
	c.stir()
}

// HandleBadKey takes that the device refused a request of the peer because of its key (IBA 9.9.3),
// which has ended the queue pair: nothing can be said to the peer any more. Of several rails that
// one is lost and no more: it may be a late WRITE of a message that came by another one since. The
// peer is not to blame while it may use memory of ours that is not always there.
func (e *Endpoint) HandleBadKey(now clock.Time, r *Rail) {
	c := r.conn
	if c.state == connDead {
		return
	}
	err := error(&PeerError{Err: ErrKey})
	if c.exposesAbsent() {
		err = errDenied
	}
	switch {
	case c.several:
		c.lose(now, r, err)
		return
	case c.state != connBroken && err != errDenied:
		e.count.Inc(ProtocolErrors)
	}
	c.fail(now, err)
}

// errDenied says what is known when the device has refused the peer memory that may be absent.
var errDenied = fmt.Errorf("%w, or the peer used a wrong key", ErrMemory)

// exposesAbsent reports whether the peer has a key to memory that is not steady.
func (c *Conn) exposesAbsent() bool {
	for _, s := range c.sends {
		if s != nil && s.hasKey && absent(s.Region) {
			return true
		}
	}
	for _, a := range c.incoming {
		if a != nil && a.hasKey && a.receive != nil && absent(a.receive.Region) {
			return true
		}
	}
	return false
}

// sayFarewell fills in the last work request of a connection.
func (c *Conn) sayFarewell(wr *verbs.SendWR) flight {
	c.farewell = false
	return c.post(wr, &item{control: Control{Type: TypeBye, Status: c.why}})
}

// bye: the peer has ended the connection.
func (c *Conn) bye(now clock.Time, why Status) {
	c.endpoint.count.Inc(ByesReceived)
	c.fail(now, &StatusError{Status: why})
}

// fail ends the connection. Each message that is under way ends with the error, as soon as no
// packet touches its memory; what has arrived whole can still be received.
func (c *Conn) fail(now clock.Time, err error) {
	if c.state == connDead {
		return
	}
	switch {
	case c.state == connBroken:
		err = c.err
	case c.allSaid():
		err = ErrClosed
	}
	e := c.endpoint
	c.state, c.err = connDead, err
	e.ready.Remove(&c.links)
	e.timers.Stop(&c.keepalive)
	e.timers.Stop(&c.goodbye)
	e.timers.Stop(&c.stall)
	e.timers.Stop(&c.stranded)
	e.timers.Stop(&c.crowd)
	e.timers.Stop(&c.asking.patience)
	e.timers.Stop(&c.asking.idle)
	e.timers.Stop(&c.stream.linger)
	if c.several && !c.leads {
		delete(e.sessions, c.ours.Session)
	}
	c.failSends()
	c.failRMAs()
	c.failReceives()
	c.freeOut()
	if !c.stream.on || c.stream.hungUp || c.arrivals.n == 0 {
		c.freeIn()
	}
	c.goOn()
	e.closed = append(e.closed, c)
	c.stir()
}

// failSends ends all messages to the peer.
func (c *Conn) failSends() {
	for _, l := range []*list.List[Send]{
		&c.pending, &c.lanes[small].flying, &c.lanes[small].landing,
		&c.lanes[large].flying, &c.lanes[large].landing, &c.marks,
	} {
		for s := l.Pop(); s != nil; s = l.Pop() {
			if s.state == sendPending || s.state == sendInSlot {
				c.finish(s, c.err)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.syncs)) { // in an order that is always the same
		s := c.syncs[key]
		delete(c.syncs, key)
		c.finish(s, c.err)
	}
	for _, l := range []*list.List[Send]{&c.puts, &c.fragments} {
		for l.Pop() != nil {
		}
	}
	for _, s := range c.sends {
		// Whose key is being made or taken away, or whose bytes are being copied, ends when that
		// is done.
		if s != nil && !s.request.busy() {
			c.hide(s)
		}
	}
}

// failReceives ends the receives that have begun, and those that wait for this peer alone.
// Messages that came whole stay.
func (c *Conn) failReceives() {
	e := c.endpoint
	for _, r := range c.rails {
		for f := range r.flights.all() {
			if f.kind == flightRead {
				e.pulling -= f.n
				c.pulling -= f.n
			}
		}
	}
	e.unthrottle()
	for c.pulls.Pop() != nil {
	}
	if c.stream.on {
		return
	}
	var whole []*arrival
	err := e.match.Forget(&c.source, func(a *arrival) {
		if a.kind == arrivalEager {
			whole = append(whole, a)
			return
		}
		c.incoming[a.id&idIndex] = nil
		e.retireArrival(a)
	}, func(r *Receive) {
		r.Err = c.err
		e.received.Push(&r.links, r)
	})
	if err == nil {
		err = e.match.Add(&c.source)
	}
	for _, a := range whole {
		if err == nil { // no receive waits for it: it would have it
			_, err = e.match.Arrive(&a.node, &c.source, a.tag, uint32(a.length))
		}
	}
	e.leave(c)
	for i, a := range c.incoming {
		switch {
		case a == nil || a.request.busy() || a.receive != nil && a.receive.request.busy():
		case a.receive == nil:
			c.incoming[i] = nil // it was claimed: ReceiveClaimed will say so
		default:
			c.end(a)
		}
	}
}

// freeIn gives back the slots of the peer. What arrived and was not looked at is lost with them.
func (c *Conn) freeIn() {
	if c.stream.holdsIn() {
		return
	}
	c.stream.rest = nil
	for c.arrivals.n > 0 {
		c.arrivals.pop()
	}
	for len(c.in) > 0 {
		r := c.in[len(c.in)-1]
		if r.state == ringAsked {
			c.dropRing(r) // its memory is given back when it comes
			continue
		}
		c.freeRing(r)
	}
}

// freeOut gives back our copies of the peer's slots.
func (c *Conn) freeOut() {
	if o := c.offered; o != nil && o.ring.stage.Bytes != nil {
		c.endpoint.giveBack(c, o.ring.stage)
	}
	c.offered = nil
	for i := range c.lanes {
		l := &c.lanes[i]
		l.replace(nil)
		for _, r := range l.old {
			if !c.stream.holdsOut(r) {
				c.endpoint.giveBack(c, r.stage)
			}
		}
		l.old = nil
	}
	c.setLocal(nil)
	if c.asking.stage.Bytes != nil {
		c.endpoint.giveBack(c, c.asking.stage)
		c.asking.stage = Memory{}
	}
}
