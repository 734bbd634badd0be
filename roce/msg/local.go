package msg

import "xroce/roce/clock"

// A localRing is the larger buffer that a sender makes in mode LocalOnly, of which the peer knows
// nothing: a message is copied there, so that its own memory needs no key, and announced from
// there as any other.
type localRing struct {
	memory Memory
	size   int // bytes of a slot

	taken []bool
	users int
	left  bool // it goes with its last message
}

// take returns a slot that is free, -1 when none is.
func (r *localRing) take() int {
	for i, taken := range r.taken {
		if !taken {
			r.taken[i] = true
			r.users++
			return i
		}
	}
	return -1
}

// localSize is how long a message may be that fits the local ring, 0 for none.
func (c *Conn) localSize() int {
	if c.local == nil {
		return 0
	}
	return c.local.size
}

// launchLocal copies a message to the local ring and announces it, or begins to make one. It
// reports whether the next message may go.
func (c *Conn) launchLocal(now clock.Time, s *Send) bool {
	r := c.local
	if r == nil || r.size < s.length {
		c.provision(now, s.Choice.Slot)
		return false
	}
	if r.users == len(r.taken) || !c.loadWhole(s) || !c.number(s) {
		return false
	}
	slot := r.take()
	off := slot * r.size
	s.gather(r.memory.Bytes[off:][:s.length], 0)
	s.local, s.localSlot = r, slot
	c.endpoint.count.Add(BytesCopiedOut, s.length)
	s.shown = r.memory.from(uint64(off))
	s.hasKey, s.state = true, sendExposed
	c.localUsed = now
	return c.announce(s)
}

// leave gives the slot of a message back.
func (c *Conn) leaveLocal(s *Send) {
	r := s.local
	s.local = nil
	r.taken[s.localSlot] = false
	r.users--
	if r.left && r.users == 0 {
		c.endpoint.giveBack(c, r.memory)
	}
}

// setLocal uses another local ring, or none.
func (c *Conn) setLocal(r *localRing) {
	if old := c.local; old != nil {
		old.left = true
		if old.users == 0 {
			c.endpoint.giveBack(c, old.memory)
		}
	}
	c.local = r
}
