package msg

import "xroce/roce/verbs"

// takeRTR: the peer has named the memory that a message goes to.
func (c *Conn) takeRTR(m *Control) error {
	s := c.sending(m.ID)
	switch {
	case s == nil || s.state != sendAnnounced || !s.hasKey:
		return ErrState
	case m.Tag != uint64(s.off) || m.Len > uint64(s.length-s.off):
		return ErrRange
	}
	s.state = sendWriting
	s.remote, s.window = named(m), s.off+int(m.Len)
	s.begin = s.off
	c.puts.Push(&s.links, s)
	c.wake()
	return nil
}

// nextWrite writes a part of a message to where the peer wants it.
func (c *Conn) nextWrite(r *Rail, wr *verbs.SendWR, f *flight) bool {
	s := c.puts.First()
	if s == nil {
		return false
	}
	most := c.stripe(s.window - s.off)
	if len(s.again) > 0 {
		most = c.endpoint.config.Chunk
	}
	at := cut(&s.again, &s.off, s.window, most)
	here, there := s.shown.By(r.ours), s.remote.By(r.theirs)
	wr.Opcode = verbs.OpWrite
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: here.Addr + uint64(at.off), Length: uint32(at.n), LKey: here.LKey,
	})
	wr.RemoteAddr, wr.RKey = there.Addr+uint64(at.off-s.begin), there.RKey
	*f = flight{kind: flightWrite, send: s, off: at.off, n: at.n}
	s.flying++
	c.puts.Remove(&s.links)
	switch {
	case s.off < s.window || len(s.again) > 0:
		c.puts.Push(&s.links, s)
	case !c.several: // nothing of it comes after what goes by the same rail
		c.sayPut(s)
	}
	return true
}

// sayPut says that all is written that the peer has asked for.
func (c *Conn) sayPut(s *Send) {
	s.state = sendAnnounced // for the next window, or the end
	c.say(Control{
		Type: TypeATP, ID: s.id, Tag: uint64(s.begin), Len: uint64(s.off - s.begin),
	})
}

// hasWritten counts a WRITE that is complete.
func (c *Conn) hasWritten(s *Send, n int) {
	c.endpoint.count.Add(BytesWritten, n)
	s.flying--
	switch {
	case s.flying > 0:
	case s.state == sendEnding:
		c.hide(s)
	case s.state == sendWriting && s.off == s.window && len(s.again) == 0:
		c.sayPut(s)
	}
}

// takeATP: what we named is written.
func (c *Conn) takeATP(m *Control) error {
	a := c.comes(m.ID)
	switch {
	case a == nil || a.way != Put || !a.hasKey || a.receive == nil:
		return ErrState
	case m.Tag != 0 || m.Len != uint64(a.want):
		return ErrRange
	}
	a.done = a.want
	c.end(a)
	return nil
}
