package msg

import "xroce/roce/clock"

// fragmentFrames is how many frames of fragments the sender may be ahead of what the receiver
// has said.
const fragmentFrames = 8

// clear lets the peer send the next part of a message through slots.
func (c *Conn) clear(a *arrival) {
	ahead := max(fragmentFrames*c.endpoint.config.EagerLimit, 1)
	a.asked = a.done + min(a.want-a.done, ahead)
	c.say(Control{Type: TypeCTS, ID: a.id, Len: uint64(a.asked)})
}

// takeCTS: the peer lets us send a message in fragments, up to a place in it.
func (c *Conn) takeCTS(m *Control) error {
	s := c.sending(m.ID)
	switch {
	case s == nil || s.state != sendAnnounced && s.state != sendFragments:
		return ErrState
	case m.Len > uint64(s.length) || m.Len <= uint64(s.window):
		return ErrRange
	}
	if s.Choice.Protocol != Fragments { // whatever we would have liked
		s.Choice.Protocol, s.Choice.Why = Fragments, PeerUnregistered
	}
	s.state, s.window = sendFragments, int(m.Len)
	if !s.request.busy() { // else it goes on with what it waits for
		c.fragments.Push(&s.links, s)
	}
	return nil
}

// sendFragments sends the next parts of messages that go in fragments, a frame of each in
// turn, as long as there are slots.
func (c *Conn) sendFragments(now clock.Time) {
	l := c.slots()
	if l.ring == nil {
		return
	}
	for s := c.fragments.First(); s != nil; s = c.fragments.First() {
		n := s.has(s.off, min(s.window-s.off, l.ring.payload()))
		if n == 0 {
			c.fragments.Remove(&s.links)
			s.flying++
			c.load(s, s.off, min(s.window-s.off, maxLoad))
			continue
		}
		h := RecordHeader{
			Type: RecordFragment, Number: uint16(s.id), Len: uint32(n), Tag: uint64(s.off),
		}
		payload, ok := c.record(now, l, &h)
		if !ok {
			return
		}
		s.gather(payload, s.off)
		c.endpoint.count.Add(BytesCopiedOut, n)
		c.closeFull()
		s.off += n
		c.fragments.Remove(&s.links)
		if s.off < s.window {
			c.fragments.Push(&s.links, s)
		}
	}
}

// takeFragment places a part of a message.
func (c *Conn) takeFragment(rec *Record) bool {
	var a *arrival
	if i := int(rec.Number & idIndex); i < len(c.incoming) {
		a = c.incoming[i]
	}
	if a == nil || uint16(a.id) != rec.Number || a.way != Fragments || a.receive == nil {
		c.broken(ErrState)
		return true
	}
	if rec.Tag != uint64(a.done) || rec.Len == 0 || int(rec.Len) > a.asked-a.done {
		c.broken(ErrRange)
		return true
	}
	c.placeFragment(a, rec.Payload)
	return true
}
