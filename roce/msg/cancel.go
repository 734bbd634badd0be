package msg

import "xroce/roce/clock"

// CancelSend takes a message back. It reports false when that is too late: a part of it has left
// or it is not under way. Else the message is complete soon, and its Err says what came of it:
//
//	ErrCancelled  nobody has received it, or will
//	nil           the peer had matched it before it heard of this: it is received
//
// A message that waits for its turn, or for a key, is always cancelled. One that was announced is
// if no receive has it, which the peer decides.
func (e *Endpoint) CancelSend(now clock.Time, s *Send) bool {
	c := s.conn
	if s.cancelled {
		return s.state != sendIdle
	}
	switch s.state {
	case sendPending:
		c.pending.Remove(&s.links)
		c.finish(s, ErrCancelled)
	case sendExposing, sendLoading:
		c.pending.Remove(&s.links)
		s.cancelled = true
	case sendExposed:
		c.pending.Remove(&s.links)
		c.unsend(s)
	case sendAnnounced:
		s.cancelled = true
		c.say(Control{Type: TypeRTSCancel, ID: s.id})
		return true
	default:
		return false
	}
	c.pump(now) // what waited behind it
	return true
}

// unsend ends a message that was not announced.
func (c *Conn) unsend(s *Send) {
	s.cancelled, s.answered, s.status = true, true, StatusCancelled
	c.hide(s)
}

// takeCancel takes back a message that nobody has received. If somebody has, its end is the
// answer.
func (c *Conn) takeCancel(m *Control) {
	if a := c.comes(m.ID); a != nil && c.endpoint.match.Withdraw(&a.node) {
		c.incoming[m.ID&idIndex] = nil
		c.endpoint.retireArrival(a)
		c.say(Control{Type: TypeATS, ID: m.ID, Status: StatusCancelled})
		return
	}
	i := 0
	for a := range c.arrivals.all() { // behind messages that wait for receives
		if a.ring == nil && !a.fin && a.rts.ID == m.ID {
			c.arrivals.remove(i)
			c.announcements--
			c.say(Control{Type: TypeATS, ID: m.ID, Status: StatusCancelled})
			return
		}
		i++
	}
}
