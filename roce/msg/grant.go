package msg

// takeProvisionReq makes large slots for the peer, if that is to be had.
func (c *Conn) takeProvisionReq(m *Control) error {
	e := c.endpoint
	if c.asked != 0 && int32(m.ID-c.asked) <= 0 {
		e.count.Inc(ProvisionStale)
		return nil // it was answered
	}
	c.asked = m.ID
	e.count.Inc(ProvisionAsked)
	most := 0
	if classes := c.classes(); len(classes) > 0 {
		most = int(c.largeLen(classes[len(classes)-1]))
	}
	rings := 0
	replace := m.Flags&FlagReplace != 0
	for _, r := range c.in {
		if replace && r.class == 0 && r.state != ringInUse {
			rings = 2 // it has not begun to use it
		}
		if r.class != 0 {
			rings++
			if r.state == ringAsked || r.epoch == m.ID {
				rings = 2
			}
		}
	}
	slots := min(int(m.Number), c.largeSlots())
	switch {
	case m.Len > uint64(most):
		c.nak(m.ID, StatusTooLarge, most)
	case rings >= 2:
		c.nak(m.ID, StatusBusy, 0) // it has not left the one before
	case e.exceeds(int64(slots) * int64(m.Len)):
		could := max(0, e.config.Registered-e.held) / int64(slots)
		c.nak(m.ID, StatusQuota, int(could))
	default:
		c.makeRing(int(m.Class), m.ID, slots, int(m.Len)).replaces = replace
	}
	return nil
}

// nak refuses large slots; slots of so many bytes there could have been.
func (c *Conn) nak(epoch uint32, why Status, could int) {
	c.endpoint.count.Inc(ProvisionDenied)
	c.say(Control{Type: TypeProvisionNak, ID: epoch, Status: why, Len: uint64(could)})
}

// takeRelease: the peer has left large slots. They are freed when all that is in them was
// taken out.
func (c *Conn) takeRelease(m *Control) error {
	for _, r := range c.in {
		if r.class == int(m.Class) && r.epoch == m.ID && r.class != 0 &&
			(r.state == ringOffered || r.state == ringInUse) {
			r.state = ringLeft
			c.vacate(r)
			return nil
		}
	}
	return ErrEpoch
}
