package trial

import (
	"fmt"

	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// observe looks at the queue pair after an event: how far it came, whether it
// lives, and whether its queues and windows are within their bounds.
func (e *endpoint) observe() {
	if e.dead || e.qp == nil {
		return
	}
	now, s := e.w.clock.Now(), e.qp.Snapshot()
	if e.receivesPosted(&s) == 0 {
		e.noRecvAt, e.noRecvOnce = now, e.noRecvOnce || len(e.heard) > 0
	}
	if e.notReadyAt == now && e.noRecvAt < now && e.node.thawedAt < now {
		e.w.fail(Status, "%s: an RNR NAK with %d receives posted", e, s.RecvPosted)
	}
	if o := e.passed(&s); o != nil {
		e.w.fail(Completion, "%s: %s %d passed its fence", e, o.name, o.id)
	}
	if s.State == roce.StateErr {
		e.die()
		return
	}
	if s.UnackedPSN != e.before.UnackedPSN || s.SendPosted == 0 {
		e.progressed()
	}
	if s.RNRWaiting {
		e.stallSince = now
	}
	var peer roce.Snapshot
	if !e.peer.dead && e.peer.qp != nil && !e.unreliable() {
		peer = e.peer.qp.Snapshot()
	}
	if wrong := outOfBounds(&e.conn.limits, &e.before, &s, &peer); wrong != "" {
		e.w.fail(Conservation, "%s: %s: %s; peer %s", e, wrong, s, peer)
	}
	e.before, e.harmSeen = s, e.harm
}

// receivesPosted is how many receives there are for the next message.
func (e *endpoint) receivesPosted(s *roce.Snapshot) int {
	if e.shared != nil {
		return e.shared.posted()
	}
	return int(s.RecvPosted)
}

// die notes that the queue pair is in ERR or gone.
func (e *endpoint) die() {
	e.dead, e.diedAt, e.diedHarm = true, e.w.clock.Now(), e.harm-e.harmAt
	e.diedAfter, e.diedRefused = e.diedAt-e.progressAt, e.stallSince >= e.progressAt
	e.diedLate = e.node.slept(e.progressAt) || e.peer.node.slept(e.progressAt)
	e.drainedAtLast = false // completions may have come since the look
	e.conn.broken(fmt.Sprintf("end %d is dead", e.side))
}

// slept reports whether the node was frozen at a time since.
func (n *node) slept(since roce.Time) bool {
	return n.frozen > 0 || n.thawedAt > 0 && n.thawedAt >= since
}

// limits are what a queue pair must keep to.
type limits struct {
	window    int // PSNs in flight
	longest   int // packets of the largest message
	sends     int // send requests
	receives  int
	responses int // answers that may wait
	reads     int // READs, atomics and their like outstanding
}

// limitsOf returns the limits of the queue pairs of a connection.
func (k *ConnConfig) limitsOf() limits {
	l := limits{
		window: k.Window, longest: (k.MaxSize+k.PathMTU.Bytes()-1)/k.PathMTU.Bytes() + 1,
		sends: 1, receives: 1, responses: 2*int(k.MaxRd) + 1, reads: int(k.MaxRd),
	}
	if l.window == 0 {
		l.window = 256
	}
	for l.sends < k.SendDepth {
		l.sends *= 2
	}
	for l.receives < k.RecvDepth {
		l.receives *= 2
	}
	return l
}

// outOfBounds compares a queue pair with its limits, with what it was and with
// its peer, whose QPN is 0 when it has none. It returns what is wrong, "" when
// nothing is.
func outOfBounds(l *limits, before, s, peer *roce.Snapshot) string {
	top, next := s.TopPSN.Diff(s.UnackedPSN), s.NextPSN.Diff(s.UnackedPSN)
	expected := peer.ExpectedPSN.Diff(s.UnackedPSN)
	switch {
	case top < 0 || int(top) > l.window+l.longest:
		return fmt.Sprintf("%d PSNs in flight, window %d", top, l.window)
	case next < 0 || next > top:
		return "the next PSN is outside of the window"
	case peer.State == roce.StateRTS && (expected < 0 || expected > top):
		return "the peer expects what was never sent or is done"
	case int(s.SendPosted) > l.sends || s.SendBegun > s.SendPosted:
		return fmt.Sprintf("%d of %d send requests begun, room for %d", s.SendBegun, s.SendPosted,
			l.sends)
	case int(s.RecvPosted) > l.receives:
		return fmt.Sprintf("%d receives, room for %d", s.RecvPosted, l.receives)
	case s.Responses > l.responses:
		return fmt.Sprintf("%d answers wait, room for %d", s.Responses, l.responses)
	case int(s.Outstanding) > l.reads:
		return fmt.Sprintf("%d READs and their like are outstanding, %d may be", s.Outstanding,
			l.reads)
	case before.EarlyRequests-s.EarlyRequests > keptFor(before, s):
		return fmt.Sprintf("%d requests were kept, %d are left", before.EarlyRequests,
			s.EarlyRequests)
	case s.UnackedPSN.Before(before.UnackedPSN):
		return "the acknowledged PSN went back"
	case s.Type != roce.TypeUC && s.ExpectedPSN.Before(before.ExpectedPSN):
		return "the expected PSN went back"
	}
	return ""
}

// keptFor is how many of the requests that were kept behind a gap may be gone:
// all but the one that closed the gap were kept, and one may have found no
// receive.
func keptFor(before, s *roce.Snapshot) int {
	n := max(int(s.ExpectedPSN.Diff(before.ExpectedPSN))-1, 0)
	if s.RecvPosted == 0 {
		n++
	}
	return n
}

// stallLimit is how long a requester with work may make no progress.
func (e *endpoint) stallLimit() roce.Time {
	k := e.conn.config
	t := roce.Time(int(k.RetryCnt)+1)*4*ackTimeout(k.Timeout) + 10*e.w.roundTrip +
		rnrTime(k.MinRNR)
	if k.RateLimit > 0 {
		// Each try sends a window, or a message, at the rate.
		window := max(k.MaxSize, e.conn.limits.window*k.PathMTU.Bytes())
		frames := roce.Time(window + window/k.PathMTU.Bytes()*100 + 1000)
		t += roce.Time(int(k.RetryCnt)+1) * frames * 8 * roce.Millisecond / roce.Time(k.RateLimit)
	}
	return t
}

// checkAlive fails when the requester got nowhere for longer than its attributes
// allow, by the time at.
func (e *endpoint) checkAlive(at roce.Time) {
	if e.dead || e.qp == nil || len(e.sends) == 0 || e.before.SendPosted == 0 {
		return
	}
	since := max(e.progressAt, e.stallSince, e.node.thawedAt)
	if waited := at - since; waited > e.stallLimit() {
		e.w.fail(Liveness, "%s: no progress for %s, allowed are %s: %s; peer %v", e,
			campaign.ClockTime(waited), campaign.ClockTime(e.stallLimit()), e.before,
			e.peer.before)
	}
}
