package msg

import "xroce/roce/clock"

// This file is about messages that a peer announced, was asked for, and does not send: their
// receives would wait for ever, and nobody could take them back.

// stallLooks is how often they are looked at within Config.Stall.
const stallLooks = 4

// slowest is how many bytes a second a peer must write at least, that writes by itself.
const slowest = 1 << 20

// lookAfterLater has messages that are being received looked after, from now on.
func (c *Conn) lookAfterLater() {
	if e := c.endpoint; !c.stall.IsSet() && c.state != connDead {
		e.timers.Set(&c.stall, c.heard+e.config.Stall/stallLooks)
	}
}

// lookAfter ends the connection when one of the messages that are being received has brought
// nothing for long.
func (c *Conn) lookAfter(now clock.Time) {
	if c.over() {
		return
	}
	open := false
	for _, a := range c.incoming {
		if a == nil || a.receive == nil {
			continue
		}
		open = true
		if a.markAt == 0 || a.done != a.mark || !c.owes(a) {
			a.mark, a.markAt = a.done, now
			continue
		}
		if now-a.markAt >= c.allowance(a) {
			c.endpoint.count.Inc(StallEnds)
			c.part(now, ErrStalled, StatusTimeout)
			return
		}
	}
	if open {
		c.endpoint.timers.Set(&c.stall, now+c.endpoint.config.Stall/stallLooks)
	}
}

// owes reports whether it is the peer's turn to bring a message on: it was asked for some of it,
// and what it sent is not held up here.
func (c *Conn) owes(a *arrival) bool {
	switch a.way {
	case Put:
		return a.hasKey
	case Fragments:
		return c.arrivals.n == 0 && a.asked > a.done
	}
	return a.asked > a.done
}

// allowance is how long a message may bring nothing.
func (c *Conn) allowance(a *arrival) clock.Time {
	stall := c.endpoint.config.Stall
	if a.way == Put {
		stall += clock.Time(a.want/slowest) * clock.Second
	}
	return stall
}
