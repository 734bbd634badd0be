package transfer

import "time"

// paceSpan is how long bytes count for sure in how fast a guest is; after twice that they do not.
const paceSpan = 30 * time.Second

// A pace is how fast a guest was lately: who sent a lot once would otherwise be fast for as long
// as that is the mean. It counts bytes in this span of time and in the one before, whenever it is
// looked at, and no time in which the guest waits for us.
type pace struct {
	begun   time.Time // when the guest was admitted, later by the time that does not count
	span    time.Time // when this span began
	stopped time.Time // since when no time counts, zero while it does
	bytes   int64     // in this span
	before  int64     // in the one before
}

// begin begins to count time.
func (p *pace) begin(now time.Time) { *p = pace{begun: now, span: now} }

// add counts bytes that have just come.
func (p *pace) add(now time.Time, bytes int64) {
	p.roll(now)
	p.bytes += bytes
}

// stop has no time count until goOn.
func (p *pace) stop(now time.Time) {
	p.goOn(now)
	p.stopped = now
}

// goOn has time count again, and returns how much did not.
func (p *pace) goOn(now time.Time) (away time.Duration) {
	if !p.stopped.IsZero() {
		away = now.Sub(p.stopped)
		p.begun, p.span, p.stopped = p.begun.Add(away), p.span.Add(away), time.Time{}
	}
	return away
}

// clock is what time it is for the guest.
func (p *pace) clock(now time.Time) time.Time {
	if !p.stopped.IsZero() {
		return p.stopped
	}
	return now
}

// roll goes on to the span that a time is in. While no time counts there is no other one.
func (p *pace) roll(now time.Time) {
	if !p.stopped.IsZero() {
		return
	}
	switch spans := now.Sub(p.span) / paceSpan; {
	case spans < 1:
	case spans == 1:
		p.before, p.bytes, p.span = p.bytes, 0, p.span.Add(paceSpan)
	default: // nothing came in any of them
		p.before, p.bytes, p.span = 0, 0, p.span.Add(spans*paceSpan)
	}
}

// rate is how many bytes a second came lately. Who has just begun did not do it in no time.
func (p *pace) rate(now time.Time) float64 {
	p.roll(now)
	now = p.clock(now)
	lately := min(now.Sub(p.begun), now.Sub(p.span)+paceSpan)
	return float64(p.before+p.bytes) / max(lately, slowGrace).Seconds()
}
