package msg

import "xroce/roce/clock"

// Flush posts a mark behind all messages that were posted before, of which nothing but s.User is
// looked at. NextSent returns it when each of them is at the peer: in a slot there, or in its place
// if it was announced; or has failed. It says nothing of whether the peer has looked at what is in
// its slots: that is Level. The errors are those of Send.
func (c *Conn) Flush(now clock.Time, s *Send) error {
	if err := c.maySend(s); err != nil {
		return err
	}
	c.prepare(now, s)
	s.mark = true
	c.pending.Push(&s.links, s)
	c.pump(now)
	return nil
}

// passMark has a mark wait for what is before it.
func (c *Conn) passMark(s *Send) {
	c.closeFrame()
	c.pending.Remove(&s.links)
	s.state = sendInSlot
	s.marked = [2]uint64{c.lanes[small].written, c.lanes[large].written}
	c.marks.Push(&s.links, s)
}

// allBefore reports whether all messages that were posted before one, which is the first of those
// that wait, are at the peer.
func (c *Conn) allBefore(s *Send) bool {
	c.closeFrame()
	for i := range c.lanes {
		if l := &c.lanes[i]; l.arrived() < l.written {
			return false
		}
	}
	return !c.announcedBefore(s)
}

// announcedBefore reports whether a message that was posted before one was announced and has not
// ended.
func (c *Conn) announcedBefore(s *Send) bool {
	for _, before := range c.sends {
		if before != nil && before.order < s.order {
			return true
		}
	}
	return false
}

// passed completes marks all before which is at the peer.
func (c *Conn) passed() {
	for s := c.marks.First(); s != nil; s = c.marks.First() {
		for i := range c.lanes {
			if c.lanes[i].arrived() < s.marked[i] {
				return
			}
		}
		if c.announcedBefore(s) {
			return
		}
		c.marks.Remove(&s.links)
		c.finish(s, nil)
	}
}
