package msg

import "xroce/roce/clock"

// takeControl judges a control message, and does what it says. The error breaks the connection.
func (c *Conn) takeControl(now clock.Time, r *Rail, b []byte) error {
	m, err := ParseControl(b)
	if err != nil {
		return err
	}
	if m.Type == TypeResume {
		return c.hearResume(now, r, &m)
	}
	if err := c.orderedBy(r); err != nil {
		return err
	}
	if err := c.fromRail(r.theirs, &m); err != nil {
		return err
	}
	if m.Sequence != c.peerControls {
		return ErrSequence
	}
	c.peerControls++
	c.endpoint.count.Inc(RecvControl)
	freedLarge := uint32(c.lanes[large].freed)
	if m.Type == TypeCredit {
		freedLarge = uint32(m.Tag)
	}
	if err := c.freed(m.Released, freedLarge); err != nil {
		return err
	}
	if c.stream.on && m.Type == TypeRTS {
		return ErrState // bytes are not announced
	}
	if c.heardLast && (m.Type == TypeRTS || m.Type == TypeFIN) {
		return ErrState
	}
	return c.obey(now, &m)
}

// obey does what a control message says.
func (c *Conn) obey(now clock.Time, m *Control) error {
	switch m.Type {
	case TypeAdvert:
		return c.takeAdvert(m)
	case TypeAdvertAck:
		return c.takeAdvertAck(m)
	case TypeRTS:
		if m.Len > MaxMessage {
			return ErrRange
		}
		if c.announcements == len(c.incoming) {
			return ErrFlood
		}
		c.announcements++
		c.arrivals.push(arrived{rts: *m})
	case TypeRTR:
		return c.takeRTR(m)
	case TypeATS:
		return c.takeATS(m)
	case TypeATP:
		return c.takeATP(m)
	case TypeCTS:
		return c.takeCTS(m)
	case TypeRTSCancel:
		c.takeCancel(m)
	case TypeProvisionReq:
		return c.takeProvisionReq(m)
	case TypeProvisionAck:
		return c.takeProvisionAck(now, m)
	case TypeProvisionNak:
		return c.takeProvisionNak(now, m)
	case TypeRelease:
		return c.takeRelease(m)
	case TypeReleaseAck:
		return nil // what was behind it is gone already
	case TypeMatched:
		return c.takeMatched(m)
	case TypeFIN:
		c.heardLast = true
		c.arrivals.push(arrived{fin: true})
	case TypeBye:
		c.bye(now, m.Status)
	case TypeCredit:
	default:
		return ErrType
	}
	return nil
}

// takeMatched completes a message whose sender waits for that.
func (c *Conn) takeMatched(m *Control) error {
	key := syncKey(m.ID, int(m.Number))
	s := c.syncs[key]
	if s == nil {
		return ErrState
	}
	delete(c.syncs, key)
	c.finish(s, nil)
	return nil
}
