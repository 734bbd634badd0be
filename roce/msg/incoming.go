package msg

import "xroce/roce/clock"

// takeRTS matches a message that was announced. It returns false when its handler is busy.
func (c *Conn) takeRTS(now clock.Time, m *Control) bool {
	e := c.endpoint
	i := int(m.ID & idIndex)
	if i >= len(c.incoming) || c.incoming[i] != nil {
		c.broken(ErrState)
		return true
	}
	a := e.newArrival(c)
	a.kind, a.tag, a.length = arrivalAnnounced, m.Tag, m.Len
	a.id, a.flags, a.remote = m.ID, m.Flags, named(m)
	c.incoming[i] = a
	if m.Flags&FlagActive != 0 {
		return c.takeActiveRTS(now, m, a)
	}
	r, err := e.match.Arrive(&a.node, &c.source, m.Tag, 0)
	switch {
	case err != nil:
		c.broken(err)
	case r != nil:
		e.begin(a, r)
	default:
		e.unmatched++
	}
	return true
}

// comes finds the message of the peer that an ID names.
func (c *Conn) comes(id uint32) *arrival {
	i := int(id & idIndex)
	if i >= len(c.incoming) || c.incoming[i] == nil || c.incoming[i].id != id {
		return nil
	}
	return c.incoming[i]
}

// begin has a message that was announced come to the receive that it has.
func (e *Endpoint) begin(a *arrival, r *Receive) {
	c := a.conn
	a.receive, a.want, a.asked, a.done = r, int(min(a.length, uint64(r.size))), 0, 0
	a.mark, a.markAt = 0, 0
	r.taken, r.Source = true, c
	a.status = StatusOK
	if uint64(a.want) < a.length {
		a.status = StatusTruncated
	}
	if a.want == 0 {
		c.end(a)
		return
	}
	c.lookAfterLater()
	switch {
	case a.flags&FlagGet != 0 && c.agreed.Capabilities&CapabilityGet != 0:
		a.way = Get
	case a.flags&(FlagPut|FlagGet) != 0 && c.agreed.Capabilities&CapabilityPut != 0:
		a.way = Put
	default:
		a.way = Fragments
		c.clear(a)
		return
	}
	a.request = Request{
		Kind: Expose, Conn: c, Pieces: r.Pieces, Region: r.Region, Size: a.want, Write: true,
		Remote: a.way == Put, asker: a,
	}
	e.ask(&a.request)
}

// answer is told the key of where a message goes, or that it is out of use.
func (a *arrival) answer(now clock.Time, q *Request, m Memory, err error) {
	c := a.conn
	switch {
	case q.Kind == Release:
		c.endpoint.complete(a)
	case q.Kind == Store:
		c.hasStored(a, err)
	case c.state == connDead:
		a.local, a.hasKey = m, err == nil
		c.end(a)
	case err != nil:
		a.way = Fragments // which needs no key
		c.endpoint.count.Inc(NotRegistered)
		c.clear(a)
	case a.way == Put:
		a.local, a.hasKey = m, true
		answer := Control{Type: TypeRTR, ID: a.id, Len: uint64(a.want)}
		c.name(&answer, &m)
		c.say(answer)
	default:
		a.local, a.hasKey = m, true
		c.pulls.Push(&a.links, a)
		c.wake()
	}
	c.pump(now)
}

// end says that a message is here, or what came of it, and completes its receive once no
// packet can touch its memory.
func (c *Conn) end(a *arrival) {
	if i := int(a.id & idIndex); c.incoming[i] == a {
		c.incoming[i] = nil
	}
	c.say(Control{Type: TypeATS, ID: a.id, Status: a.status, Len: uint64(a.done)})
	if !a.hasKey {
		c.endpoint.complete(a)
		return
	}
	a.hasKey = false
	a.request = Request{Kind: Release, Conn: c, Given: a.local, asker: a}
	c.endpoint.ask(&a.request)
}

// complete gives the receive of a message that was announced back to who asked.
func (e *Endpoint) complete(a *arrival) {
	r := a.receive
	r.taken = false
	r.Length, r.Protocol = a.done, a.way
	err := a.err
	if err == nil && a.done < a.want {
		err = a.conn.err
	}
	e.hand(a.conn, r, a.tag, a.length, err)
	e.retireArrival(a)
}
