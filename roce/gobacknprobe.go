package roce

import (
	"xroce/roce/counter"
	"xroce/roce/recovery"
	"xroce/roce/wire"
)

// A responder tells of a gap once (IBA 9.7.5.2). When that NAK is lost, or what is sent
// again for it, nobody says anything more, and it would take the local ACK timeout, which
// is long, to find out. So after a silence of a few round trips the requester sends the
// oldest packet again, alone and asking. Any responder takes it: it is the one that is
// awaited, or a duplicate, which is acknowledged with the newest that was taken. Each probe
// waits twice as long as the one before, and none costs a retry or puts the local ACK timer
// off. A request whose answer is data is not asked for in this way: it would be executed,
// or answered, once more. Nor is anybody asked on whose path nothing was lost so far: a
// peer that is silent there is more likely to be busy.

// probingBack is the go-back-N of a connection of which something was lost.
type probingBack struct {
	goBackN
	tail  recovery.TailProbe
	psn   wire.PSN // what was sent for a probe
	stage backStage
}

// backStage is how far a probe has come.
type backStage uint8

const (
	backQuiet backStage = iota
	// backProbed: the oldest goes alone, or went, and what comes of it tells the rest.
	backProbed
	// backChased: the answer was for more than that, so it may be one to what was sent
	// before; the packet that is the oldest since then went at once.
	backChased
)

func (x *probingBack) restart(wire.PSN) { x.r.recovery = x.goBackN }
func (x *probingBack) stop()            { x.abort() }
func (x *probingBack) wentBack(Time)    { x.abort() }
func (x *probingBack) refused(wire.PSN) { x.abort() }
func (x *probingBack) deadline() Time   { return x.tail.Deadline() }

// handleDeadline probes when nothing came for too long.
func (x *probingBack) handleDeadline(now Time) {
	if at := x.deadline(); at != 0 && now >= at {
		x.tail.Disarm()
		x.probe(now, backProbed)
	}
}

// probing reports whether the next packet is a probe.
func (x *probingBack) probing() bool { return x.tail.Pending() }

// probe has the oldest packet sent again, alone, unless something is about to go again in
// any case or its answer is data.
func (x *probingBack) probe(now Time, stage backStage) {
	r := x.r
	if r.una == r.sentTop || r.psn != r.sentTop || r.rnrWait || r.oldest().needsResponse() {
		return
	}
	if r.stalled {
		x.rearm(now) // nothing can be sent for want of a page
		return
	}
	r.count.Inc(counter.TailProbes)
	x.tail.Fire(now)
	x.psn, x.stage = r.una, stage
	asked := r.asked
	r.goBack(r.una)
	r.asked, r.sinceAck = asked, ackEvery // this one asks, and others have asked before
	r.resent = true                       // what answers it tells of no data
}

// skip moves psn back to the end once a probe has left.
func (x *probingBack) skip() {
	if x.stage != backQuiet && x.r.psn != x.psn {
		x.resume()
	}
}

// resume goes on behind everything that was sent.
func (x *probingBack) resume() {
	x.r.psn = x.r.sentTop
	x.r.cur = x.r.entryOf(x.r.psn)
}

// sent follows a packet that left. Silence counts from the first that asks for an answer.
func (x *probingBack) sent(now Time, psn wire.PSN, w *sendWQE, first bool) {
	r := x.r
	asks := r.sinceAck == 0 || w.needsResponse()
	if asks || !first {
		x.tail.Sent(now, psn, first, asks)
	}
	if asks && x.tail.Deadline() == 0 {
		x.rearm(now)
	}
}

// advanced follows what the peer acknowledged. When that is the probe and no more, it was
// the packet that was missing, and what went behind it was dropped: all of that goes
// again. When it is more, the packet that is the oldest now may be the missing one.
func (x *probingBack) advanced(now Time) {
	r := x.r
	x.tail.Acknowledged(now, r.una, nil)
	x.tail.Advanced(now)
	stage := x.stage
	if stage == backQuiet {
		return
	}
	left := !x.tail.Pending()
	alone := r.una == x.psn.Add(1)
	x.abort()
	x.resume()
	switch {
	case !left || r.una == r.sentTop: // there is no need for it any more
	case r.oldest().needsResponse():
		// Its data may be on the way, whatever was acknowledged behind it.
	case alone:
		x.tail.Answered()
		r.resent = true
		r.lost(now, false)
		r.goBack(r.una)
	case stage == backProbed:
		x.probe(now, backChased)
	}
}

// rearm sets the time of the next probe, counted from now or from when the next packet may
// go. There is none when nobody was asked, before a round trip was measured and something
// lost, and when the local ACK timer is to expire first or is off.
func (x *probingBack) rearm(now Time) {
	r := x.r
	if !r.asked.After(r.una) || r.una == r.sentTop {
		x.tail.Disarm()
		return
	}
	x.tail.ArmSoon(r.pace.Next(now), r.ackAt)
}

// abort forgets a probe, and that there was to be one.
func (x *probingBack) abort() {
	x.tail.Abort()
	x.stage = backQuiet
}
