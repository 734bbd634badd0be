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
	s.remote, s.window = Memory{Addr: m.Addr, RKey: m.RKey}, s.off+int(m.Len)
	s.begin = s.off
	c.puts.push(s)
	c.wake()
	return nil
}

// nextWrite writes a part of a message to where the peer wants it, and says so behind the
// last one.
func (c *Conn) nextWrite(wr *verbs.SendWR, f *flight) bool {
	s := c.puts.first
	if s == nil {
		return false
	}
	n := min(s.window-s.off, c.endpoint.config.Chunk)
	wr.Opcode = verbs.OpWrite
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: s.shown.Addr + uint64(s.off), Length: uint32(n), LKey: s.shown.LKey,
	})
	wr.RemoteAddr, wr.RKey = s.remote.Addr+uint64(s.off-s.begin), s.remote.RKey
	*f = flight{kind: flightWrite, send: s, n: n}
	s.off += n
	s.flying++
	c.puts.remove(s)
	if s.off < s.window {
		c.puts.push(s)
		return true
	}
	s.state = sendAnnounced // for the next window, or the end
	c.say(Control{
		Type: TypeATP, ID: s.id, Tag: uint64(s.begin), Len: uint64(s.off - s.begin),
	})
	return true
}

// hasWritten counts a WRITE that is complete.
func (c *Conn) hasWritten(s *Send, n int) {
	c.endpoint.count.Add(BytesWritten, n)
	s.flying--
	if s.state == sendEnding && s.flying == 0 {
		c.hide(s)
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
