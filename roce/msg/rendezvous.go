package msg

import "xroce/roce/clock"

// idIndex is the part of the ID of a rendezvous that says where it is kept, here and there;
// the rest tells those apart that were there one after the other.
const idIndex = MaxRendezvous - 1

// rendezvousByKey is what one of must be agreed for memory to be named by keys.
const rendezvousByKey = CapabilityGet | CapabilityPut

// announce sends the RTS of a message, or begins to: its memory needs a key first. It reports
// whether the next message may go.
func (c *Conn) announce(s *Send) bool {
	switch s.state {
	case sendPending:
		if !c.number(s) {
			return false
		}
		if s.Choice.Protocol == Fragments {
			break
		}
		s.state = sendExposing
		s.request = Request{
			Kind: Expose, Conn: c, Pieces: s.Pieces, Region: s.Region, Size: s.length,
			ToRead: s.Choice.Protocol == Get, asker: s,
		}
		c.endpoint.ask(&s.request)
		return false
	case sendExposing:
		return false
	}
	c.pending.Remove(&s.links)
	s.state = sendAnnounced
	c.countSent(s)
	m := Control{Type: TypeRTS, ID: s.id, Len: uint64(s.length), Tag: s.Tag}
	switch p := s.Choice.Protocol; {
	case p == Get, p == Provisioned && c.agreed.Capabilities&CapabilityGet != 0:
		m.Flags = FlagGet
		c.name(&m, &s.shown)
	case p != Fragments:
		m.Flags = FlagPut
	}
	if s.Active {
		m.Flags, m.Number = m.Flags|FlagActive, s.Handler
	}
	c.sayInOrder(m)
	return true
}

// number gives a message an ID, if another rendezvous is allowed.
func (c *Conn) number(s *Send) bool {
	for range c.sends {
		c.lastID++
		if i := int(c.lastID) % len(c.sends); c.sends[i] == nil {
			c.sends[i] = s
			c.generation++
			s.id = c.generation*MaxRendezvous | uint32(i)
			return true
		}
	}
	return false
}

// sending finds the message of ours that an ID of the peer's answer names.
func (c *Conn) sending(id uint32) *Send {
	i := int(id & idIndex)
	if i >= len(c.sends) || c.sends[i] == nil || c.sends[i].id != id {
		return nil
	}
	return c.sends[i]
}

// answer is told the key of a message, or that it is out of use.
func (s *Send) answer(now clock.Time, q *Request, m Memory, err error) {
	c := s.conn
	switch q.Kind {
	case Release:
		c.settle(s)
		c.pump(now)
		return
	case Load:
		c.hasLoaded(now, s, err)
		return
	}
	if err == nil {
		s.shown, s.hasKey = m, true
	}
	switch {
	case c.state == connDead:
		c.hide(s)
		return
	case s.cancelled:
		c.unsend(s)
		c.pump(now)
		return
	case err != nil:
		s.Choice.Protocol, s.Choice.Why = Fragments, Unregistered
		c.endpoint.count.Inc(NotRegistered)
	}
	s.state = sendExposed
	c.pump(now)
}

// takeATS ends a message that was announced: the peer has it, or does not want it.
func (c *Conn) takeATS(m *Control) error {
	s := c.sending(m.ID)
	if s == nil || m.Len > uint64(s.length) {
		return ErrState
	}
	switch s.state {
	case sendAnnounced, sendWriting, sendFragments:
	default:
		return ErrState
	}
	s.answered, s.status, s.Sent = true, m.Status, int(m.Len)
	if class := c.endpoint.classOf(s.length); class >= 0 && s.way == 1+byRendezvous {
		c.costs.classes[class].add(byRendezvous, c.heard-s.left)
	}
	c.stopWriting(s)
	s.state = sendEnding
	if s.flying == 0 {
		c.hide(s)
	}
	return nil
}

// hide takes the key of a message out of use, and then ends it.
func (c *Conn) hide(s *Send) {
	s.state = sendHiding
	if !s.hasKey {
		c.settle(s)
		return
	}
	s.hasKey = false
	if s.local != nil {
		c.leaveLocal(s)
		c.settle(s)
		return
	}
	s.request = Request{Kind: Release, Conn: c, Given: s.shown, asker: s}
	c.endpoint.ask(&s.request)
}

// settle ends a message that was announced and has no key any more.
func (c *Conn) settle(s *Send) {
	if c.sending(s.id) == s {
		c.sends[s.id&idIndex] = nil
	}
	switch {
	case !s.answered:
		c.finish(s, c.err)
	case s.cancelled && s.status == StatusCancelled:
		c.finish(s, ErrCancelled)
	case s.status != StatusOK && s.status != StatusTruncated:
		c.finish(s, &StatusError{Status: s.status})
	default:
		c.finish(s, nil)
	}
}
