package recovery

import (
	"xroce/roce/clock"
	"xroce/roce/wire"
)

const (
	// probeFloor is the least time before a probe. A peer that is not on a
	// processor for a moment, or acknowledges many packets at once, is not silent.
	probeFloor = 200 * clock.Microsecond
	// probeInitial is that time before any round trip was measured.
	probeInitial = clock.Millisecond
	// probeShift bounds how often the time doubles.
	probeShift = 10
)

// A TailProbe decides when to probe for a lost tail (RFC 8985 section 7, in terms of
// PSNs). Packets that arrive tell of those before them that did not; when the last of
// what was sent is lost, or its acknowledge, nothing tells. A probe is one packet that
// is sent again and must be acknowledged. It says nothing about the life of the peer.
type TailProbe struct {
	deadline clock.Time
	fired    clock.Time // when the last probe was decided on
	// The sample that is being taken: a PSN that was sent once and asks for an
	// acknowledge, and when it was sent, 0 for none.
	sampleAt  clock.Time
	rtt       RTT
	samplePSN wire.PSN
	reorder   bool  // packets may overtake each other
	pending   bool  // the next packet is a probe
	count     uint8 // probes since the oldest unacknowledged PSN last moved
	// backoff is how often the interval doubled since the last sample, or a probe that
	// was acknowledged as soon as it should be: else the round trip may have become
	// longer.
	backoff uint8
}

// NewTailProbe returns a probe without a deadline and without samples.
func NewTailProbe(reorder bool) TailProbe { return TailProbe{reorder: reorder} }

// Fresh returns a probe as new, for another connection.
func (p *TailProbe) Fresh() TailProbe { return NewTailProbe(p.reorder) }

// RoundTrip returns the average round trip, 0 before one was measured.
func (p *TailProbe) RoundTrip() clock.Time { return p.rtt.Smoothed() }

// interval is how long the peer may be silent at first.
func (p *TailProbe) interval() clock.Time {
	t := clock.Time(probeInitial)
	if p.rtt.Smoothed() != 0 {
		t = max(p.rtt.RTO(), probeFloor)
	}
	if p.reorder {
		t += reorderDelay
	}
	return t
}

// Sent follows a packet that left, for the first time or again, and asks for an
// acknowledge of its own or not. What left twice is no sample, as it is not known which
// of the two was acknowledged (Karn).
func (p *TailProbe) Sent(now clock.Time, psn wire.PSN, first, asks bool) {
	switch {
	case first && asks && p.sampleAt == 0:
		p.samplePSN, p.sampleAt = psn, now
	case !first && psn == p.samplePSN:
		p.sampleAt = 0
	}
	p.pending = false
}

// Acknowledged ends the sample when its PSN is acknowledged: it lies before the PSN up
// to which acknowledges have come, or the peer holds it. A peer that tells of no packets
// that it holds has a nil set.
func (p *TailProbe) Acknowledged(now clock.Time, acked wire.PSN, sacked *Set) {
	if p.sampleAt != 0 &&
		(acked.After(p.samplePSN) || sacked != nil && sacked.Has(p.samplePSN)) {
		p.rtt.Sample(now - p.sampleAt)
		p.sampleAt, p.backoff = 0, 0
	}
}

// Advanced follows an advance of the oldest unacknowledged PSN.
func (p *TailProbe) Advanced(now clock.Time) {
	if p.count == 0 {
		return
	}
	// The acknowledge was neither so soon that it is for what was sent before the
	// probe, nor late.
	if t := now - p.fired; t >= p.rtt.Smoothed()/2 && t <= p.interval() {
		p.backoff = 0
	}
	p.count = 0
}

// Answered says that the acknowledge that came was for a probe, however soon: it waited for
// nothing that was sent before, so it may come much sooner than those for full queues do.
func (p *TailProbe) Answered() { p.count, p.backoff = 0, 0 }

// Arm sets the deadline, counted from a time. There is none when it would not be
// before another time, at which the caller acts by itself.
func (p *TailProbe) Arm(from, before clock.Time) {
	p.deadline = 0
	if at := from + p.interval()<<p.backoff; at < before {
		p.deadline = at
	}
}

// ArmSoon is Arm after two round trips (RFC 8985, 7.2), where a probe in vain costs little.
// There is no deadline before one was measured.
func (p *TailProbe) ArmSoon(from, before clock.Time) {
	p.deadline = 0
	if p.rtt.Smoothed() == 0 {
		return
	}
	if at := from + max(2*p.rtt.Smoothed(), probeFloor)<<p.backoff; at < before {
		p.deadline = at
	}
}

// Disarm takes the deadline away.
func (p *TailProbe) Disarm() { p.deadline = 0 }

// Abort takes the deadline away and the probe that was to be next.
func (p *TailProbe) Abort() { p.deadline, p.pending = 0, false }

// Deadline returns when to probe, 0 for never.
func (p *TailProbe) Deadline() clock.Time { return p.deadline }

// Fire says that the next packet is a probe.
func (p *TailProbe) Fire(now clock.Time) {
	p.count = min(p.count+1, probeShift)
	p.backoff = min(p.backoff+1, probeShift)
	p.fired = now
	p.pending = true
}

// Pending reports whether the next packet is a probe.
func (p *TailProbe) Pending() bool { return p.pending }

// InVain reports whether a probe was sent since the oldest unacknowledged PSN last
// moved.
func (p *TailProbe) InVain() bool { return p.count > 0 }
