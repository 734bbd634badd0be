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

// backProbe is what a requester with go-back-N knows of the probe for what is missing.
type backProbe struct {
	recovery.TailProbe
	psn   wire.PSN // what was sent for one
	stage backStage
	lossy bool // something of this connection was lost
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

func (g goBackN) deadline() Time { return g.r.tail.Deadline() }

// handleDeadline probes when nothing came for too long.
func (g goBackN) handleDeadline(now Time) {
	if at := g.r.tail.Deadline(); at != 0 && now >= at {
		g.r.tail.Disarm()
		g.probe(now, backProbed)
	}
}

// probing reports whether the next packet is a probe.
func (g goBackN) probing() bool { return g.r.tail.Pending() }

// probe has the oldest packet sent again, alone, unless something is about to go again in
// any case or its answer is data.
func (g goBackN) probe(now Time, stage backStage) {
	r := g.r
	if r.una == r.sentTop || r.psn != r.sentTop || r.rnrWait || r.oldest().needsResponse() {
		return
	}
	if r.stalled {
		g.rearm(now) // nothing can be sent for want of a page
		return
	}
	r.count.Inc(counter.TailProbes)
	r.tail.Fire(now)
	r.tail.psn, r.tail.stage = r.una, stage
	asked := r.asked
	r.goBack(r.una)
	r.asked, r.sinceAck = asked, ackEvery // this one asks, and others have asked before
	r.resent = true                       // what answers it tells of no data
}

// skip moves psn back to the end once a probe has left.
func (g goBackN) skip() {
	if t := &g.r.tail; t.stage != backQuiet && g.r.psn != t.psn {
		g.resume()
	}
}

// resume goes on behind everything that was sent.
func (g goBackN) resume() {
	g.r.psn = g.r.sentTop
	g.r.cur = g.r.entryOf(g.r.psn)
}

// sent follows a packet that left. Silence counts from the first that asks for an answer.
func (g goBackN) sent(now Time, psn wire.PSN, w *sendWQE, first bool) {
	r := g.r
	asks := r.sinceAck == 0 || w.needsResponse()
	if asks || !first {
		r.tail.Sent(now, psn, first, asks)
	}
	if asks && r.tail.Deadline() == 0 {
		g.rearm(now)
	}
}

// advanced follows what the peer acknowledged. When that is the probe and no more, it was
// the packet that was missing, and what went behind it was dropped: all of that goes
// again. When it is more, the packet that is the oldest now may be the missing one.
func (g goBackN) advanced(now Time) {
	r := g.r
	r.tail.Acknowledged(now, r.una, nil)
	r.tail.Advanced(now)
	stage := r.tail.stage
	if stage == backQuiet {
		return
	}
	left := !r.tail.Pending()
	alone := r.una == r.tail.psn.Add(1)
	g.abort()
	g.resume()
	switch {
	case !left || r.una == r.sentTop: // there is no need for it any more
	case r.oldest().needsResponse():
		// Its data may be on the way, whatever was acknowledged behind it.
	case alone:
		r.tail.Answered()
		r.resent = true
		r.lost(now, false)
		r.goBack(r.una)
	case stage == backProbed:
		g.probe(now, backChased)
	}
}

// rearm sets the time of the next probe, counted from now or from when the next packet may
// go. There is none when nobody was asked, before a round trip was measured and something
// lost, and when the local ACK timer is to expire first or is off.
func (g goBackN) rearm(now Time) {
	r := g.r
	if !r.asked.After(r.una) || r.una == r.sentTop || !r.tail.lossy {
		r.tail.Disarm()
		return
	}
	r.tail.ArmSoon(r.pace.Next(now), r.ackAt)
}

// wentBack follows the decision to send everything again.
func (g goBackN) wentBack() {
	g.abort()
	g.r.tail.lossy = true
}

// abort forgets a probe, and that there was to be one.
func (g goBackN) abort() {
	g.r.tail.Abort()
	g.r.tail.stage = backQuiet
}
