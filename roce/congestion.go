package roce

import (
	"xroce/roce/cc"
	"xroce/roce/counter"
	"xroce/roce/wire"
)

// A congestion is what a QP has for congestion control. As the receiver of data it answers
// marks of switches with CNPs; as its sender it has a controller, whose rate holds requests
// and the data of READs, and whose window holds requests. What is decided, is in roce/cc.
type congestion struct {
	config   *cc.Config
	control  cc.Controller // nil without an algorithm, and when the QP has ended
	notifier cc.Notifier
	cnp      wire.Template
	cnpDue   bool

	una wire.PSN // up to where the controller knows of what arrived
	// timed is a packet that asks for an answer, sent at timedAt; timing says that there is
	// one. What goes again is not timed (Karn's rule).
	timing  bool
	timed   wire.PSN
	timedAt Time
}

// begin gives a connection its controller.
func (c *congestion) begin(a cc.Algorithm) { c.control = c.config.New(a) }

// stop ends control: nothing is due any more.
func (c *congestion) stop() { c.control, c.cnpDue = nil, false }

// reset forgets the connection.
func (c *congestion) reset() { *c = congestion{config: c.config} }

// setPath makes the headers of CNPs on a path: those of the flow, with a DSCP and a priority
// of their own, and ECT(0) as ConnectX has it.
func (c *congestion) setPath(p wire.Path) error {
	p.TClass = c.config.CNPDSCP<<2 | wire.ECT0
	p.Tags = p.Tags.WithPriority(c.config.CNPPriority)
	var t wire.Template
	if err := t.Init(p); err != nil {
		return err
	}
	c.cnp = t
	return nil
}

// rate returns that of the controller, 0 for none.
func (c *congestion) rate() uint32 {
	if c.control == nil {
		return 0
	}
	return c.control.Rate()
}

// alpha returns the estimate of a DCQCN, 0 of others.
func (c *congestion) alpha() float64 {
	if d, ok := c.control.(*cc.DCQCN); ok {
		return d.Alpha()
	}
	return 0
}

// deadline returns when the controller wants to be called, 0 for never.
func (c *congestion) deadline() Time {
	if c.control == nil {
		return 0
	}
	return c.control.Deadline()
}

// time follows a packet that leaves. If it goes for the first time and asks for an answer, its
// round trip is timed, unless another's is. If one goes again, none is: what answers may be late
// for want of a receive, or because it was lost.
func (c *congestion) time(now Time, psn wire.PSN, first, asks bool) {
	switch {
	case !first:
		c.timing = false
	case asks && !c.timing:
		c.timing, c.timed, c.timedAt = true, psn, now
	}
}

// putCNP writes the CNP that is due, if one is (IBA annex A17, 17.9.3).
func (c *congestion) putCNP(t *transport, frame []byte) int {
	if !c.cnpDue {
		return 0
	}
	c.cnpDue = false
	b := frame[c.cnp.Len():]
	wire.BTH{
		Opcode: wire.CNP, BECN: true, PKey: t.pkey(), DestQP: t.attr.DestQPN,
	}.Put(b)
	const reserved = 16
	clear(b[wire.BTHLen:][:reserved])
	t.ipID++
	t.count.Inc(counter.NPCNPSent)
	if t.trace != nil {
		t.trace.packet(TraceSent, wire.CNP, 0)
	}
	return c.cnp.Seal(frame, wire.BTHLen+reserved, t.ipID)
}

// observe looks at what a switch and the peer say of the path with an admitted packet, and
// reports whether it was a CNP. Marks on acknowledges and CNPs mean nothing: those are not
// held to a rate.
func (r *requester) observe(now Time, p *wire.Packet) (cnp bool) {
	c := r.congestion
	if p.BTH.Opcode == wire.CNP {
		if c.control != nil && c.control.Notified(now) {
			r.count.Inc(counter.RPCNPHandled)
			r.limit(now)
		} else {
			r.count.Inc(counter.RPCNPIgnored)
		}
		return true
	}
	if p.TClass&wire.ECNMask == wire.ECNCE && p.Framing != wire.FramingV1 &&
		!p.Spec.Is(wire.ClassAck) {
		r.count.Inc(counter.NPECNMarked)
		if c.notifier.Marked(now, c.config.CNPInterval) {
			c.cnpDue = true
		}
	}
	return false
}

// left tells the controller of a frame of n bytes that left.
func (r *requester) left(now Time, n int) {
	if c := r.congestion; c != nil && c.control != nil {
		c.control.Sent(now, n)
		r.limit(now)
	}
}

// learn tells the controller of what the peer acknowledged.
func (r *requester) learn(now Time) {
	c := r.congestion
	packets := uint32(r.una.Sub(uint32(c.una)))
	c.una = r.una
	rtt := Time(0)
	if c.timing && r.una.After(c.timed) {
		rtt, c.timing = now-c.timedAt, false
	}
	if c.control != nil {
		c.control.Acknowledged(now, packets, rtt)
		r.limit(now)
	}
}

// lost tells the controller of a decision to send again.
func (r *requester) lost(now Time, timeout bool) {
	c := r.congestion
	if c == nil || c.control == nil {
		return
	}
	c.timing = false
	c.control.Lost(now, timeout)
	r.limit(now)
}

// controlDeadline calls the controller, whose time may have come.
func (r *requester) controlDeadline(now Time) {
	if at := r.congestion.deadline(); at != 0 && now >= at {
		r.congestion.control.HandleDeadline(now)
		r.limit(now)
	}
}

// setRateLimit follows a change of RATE_LIMIT: what was spent at the old one is forgotten, so
// that a packet may go now.
func (r *requester) setRateLimit(now Time) {
	r.pace.SetRate(now, r.attr.RateLimit)
	r.paced = false
	if r.congestion != nil {
		r.limit(now)
	}
	r.hastenAckTimer(now)
}

// limit makes the lower of the controller's rate and RATE_LIMIT the rate, and the smaller of
// its window and the QP's own the window.
func (r *requester) limit(now Time) {
	rate, window := r.attr.RateLimit, r.configured
	if r.recovery.selective() {
		window = min(window, r.recovery.span())
	}
	if c := r.congestion.control; c != nil {
		if kbps := c.Rate(); kbps != 0 && (rate == 0 || kbps < rate) {
			rate = kbps
		}
		if w := c.Window(); w != 0 {
			window = min(window, w)
		}
	}
	r.window = window
	r.pace.Adjust(now, rate)
}
