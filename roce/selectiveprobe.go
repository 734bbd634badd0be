package roce

import (
	"xroce/roce/counter"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// Packets that arrive tell of those before them that did not. When the last of what
// was sent is lost, or the answer to it, nothing tells; long before the local ACK
// timer does, a probe asks: one packet, which is sent again and must be answered.
// That is the tail loss probe of RFC 8985 in the terms of PSNs. It says nothing
// about the peer's life, so it costs no retry.
//
// Only peers with ExtSelectiveRepeat are probed: their answer to one packet tells
// what else is missing.

const (
	// probeFloor is the least time before a probe. A peer that is not on a
	// processor for a moment, or answers many packets at once, is not silent.
	probeFloor = 200 * Microsecond
	// probeInitial is that time before any round trip was measured.
	probeInitial = Millisecond
	// probeShift bounds how often the time doubles.
	probeShift = 10
)

// tailProbe decides when to probe.
type tailProbe struct {
	at    Time  // 0 for never
	asks  bool  // the next packet is a probe
	count uint8 // since una last moved
	// How often the interval doubled since the last sample, or a probe that was
	// answered as soon as it should be: else the round trip may have become longer.
	backoff uint8
	probed  Time // when the last one was decided on
	// Smoothed round trip and its variation (RFC 6298); 0 before the first sample.
	rtt, deviation Time
	// The sample that is being taken: a PSN that was sent once and asks for an
	// answer, and when it was sent, 0 for none.
	samplePSN wire.PSN
	sampleAt  Time
}

// interval is how long the peer may be silent at first.
func (p *tailProbe) interval(e Extensions) Time {
	t := Time(probeInitial)
	if p.rtt != 0 {
		t = max(p.rtt+4*p.deviation, probeFloor)
	}
	if e&ExtReorderWindow != 0 {
		t += reorderDelay
	}
	return t
}

// sample takes one round trip into the average (RFC 6298, 2.2 and 2.3).
func (p *tailProbe) sample(t Time) {
	if p.rtt == 0 {
		p.rtt, p.deviation = t, t/2
		return
	}
	p.deviation += (max(t-p.rtt, p.rtt-t) - p.deviation) / 4
	p.rtt += (t - p.rtt) / 8
}

// measure ends the sample when its PSN has been answered: it lies before the PSN up
// to which answers have come, or the peer keeps it.
func (x *selective) measure(now Time, answered wire.PSN) {
	p := &x.probe
	if p.sampleAt != 0 && (answered.After(p.samplePSN) || x.kept.has(p.samplePSN)) {
		p.sample(now - p.sampleAt)
		p.sampleAt, p.backoff = 0, 0
	}
}

// followSent follows a request packet of w that left, for the first time or again.
// What left twice is no sample: its answer may be to either (Karn).
func (q *QP) followSent(now Time, psn wire.PSN, w *sendWQE, first bool) {
	x, p := q.sel, &q.sel.probe
	x.wasSent(psn, first)
	switch asks := q.req.sinceAck == 0 || w.opcode.Op().Reply != verbs.ReplyAck; {
	case first && asks && p.sampleAt == 0:
		p.samplePSN, p.sampleAt = psn, now
	case !first && psn == p.samplePSN:
		p.sampleAt = 0
	}
	p.asks = false
	q.armProbe(now)
}

// followProgress follows an advance of una.
func (q *QP) followProgress(now Time) {
	x, una := q.sel, q.req.una
	x.measure(now, una)
	x.passed(una)
	if p := &x.probe; p.count > 0 {
		// Neither so soon that it answers what was sent before, nor late.
		if t := now - p.probed; t >= p.rtt/2 && t <= p.interval(x.ext) {
			p.backoff = 0
		}
		p.count = 0
	}
	if x.alone {
		q.goBack(una)
		x.beginRound(q.req.sentTop)
	}
}

// armProbe sets the time of the next probe, counted from now or from when the next
// packet may go. There is none when the local ACK timer is to expire first, or is off.
func (q *QP) armProbe(now Time) {
	x, r := q.sel, &q.req
	x.probe.at = 0
	if x.ext&ExtSelectiveRepeat == 0 || r.una == r.sentTop {
		return
	}
	at := r.pace.Next(now)
	if at += x.probe.interval(x.ext) << x.probe.backoff; at < r.ackAt {
		x.probe.at = at
	}
}

// probeTail sends one packet again after silence, unless the oldest is about to go
// in any case, or the peer asked for patience.
func (q *QP) probeTail(now Time) {
	x, r := q.sel, &q.req
	x.probe.at = 0
	switch {
	case r.una == r.sentTop || r.psn == r.una || r.rnrWait:
		return
	case q.stalled:
		q.armProbe(now) // nothing can be sent for want of a page
		return
	}
	psn := q.probePSN()
	q.count.Inc(counter.TailProbes)
	x.probe.count = min(x.probe.count+1, probeShift)
	x.probe.backoff = min(x.probe.backoff+1, probeShift)
	x.probe.probed = now
	x.miss(psn)
	x.probe.asks = true
	q.goBack(psn)
	x.stretch(psn.Add(1))
	x.mark, x.again = r.sentTop, 0
}

// probing reports whether the next packet is a probe.
func (q *QP) probing() bool { return q.sel != nil && q.sel.probe.asks }

// probePSN chooses what to send again. The newest packet makes the peer tell of
// everything before it that is missing. It is no choice when its answer is dear, or
// when it was a repetition of the oldest that was not heard of: then, and when a
// probe was in vain, the oldest goes, which may be all that is missing.
func (q *QP) probePSN() wire.PSN {
	x, r := q.sel, &q.req
	newest, i := r.sentTop.Sub(1), r.cur
	if r.psn != r.sentTop || x.probe.count > 0 || x.repeated.has(r.una) || r.failed {
		return r.una
	}
	if i == r.new || q.sq.At(i).first == r.psn {
		i--
	}
	w := q.sq.At(i)
	if w.opcode.Op().Reply != verbs.ReplyAck || x.kept.has(newest) || r.credit.short(w) {
		return r.una
	}
	return newest
}
