package cc

import "xroce/roce/clock"

// A Pacer holds frames to a rate: a token bucket that is kept as the time at which
// the next byte is due, and may lie burst in the past. The zero value holds nothing
// back.
type Pacer struct {
	rate uint32 // kbit/s, 0 for none
	part uint32 // of a nanosecond that is spent beyond at, in 1/rate
	at   clock.Time
}

// burst is how much unused time may be caught up with: enough to make up for a late
// timer, not enough to be seen as a burst.
const burst = 50 * clock.Microsecond

// SetRate changes the rate to kbps kbit/s, 0 for none. What was spent is forgotten.
func (p *Pacer) SetRate(now clock.Time, kbps uint32) { *p = Pacer{rate: kbps, at: now} }

// Adjust changes the rate to kbps kbit/s, 0 for none, and keeps what was spent: the next
// frame is due when it was, and only the one behind it at the new rate.
func (p *Pacer) Adjust(now clock.Time, kbps uint32) {
	switch {
	case kbps == p.rate:
	case p.rate == 0 || kbps == 0:
		p.SetRate(now, kbps)
	default:
		p.rate, p.part = kbps, 0
	}
}

// Limited reports whether there is a rate.
func (p *Pacer) Limited() bool { return p.rate != 0 }

// Early reports whether it is too early for a frame.
func (p *Pacer) Early(now clock.Time) bool { return p.rate != 0 && now < p.at }

// Due returns when the next frame is due, if there is a rate.
func (p *Pacer) Due() clock.Time { return p.at }

// Next returns the earliest time from now on at which a frame may go.
func (p *Pacer) Next(now clock.Time) clock.Time {
	if p.rate == 0 {
		return now
	}
	return max(now, p.at)
}

// Pauses reports whether the frame behind one of n bytes, if that goes now, is to wait for
// longer than the time that may be caught up with.
func (p *Pacer) Pauses(now clock.Time, n int) bool {
	if p.rate == 0 {
		return false
	}
	after := *p
	after.Spend(now, n)
	return after.at > now+burst
}

// Spend notes a frame of n bytes.
func (p *Pacer) Spend(now clock.Time, n int) {
	if p.rate == 0 {
		return
	}
	// Bits over kbit/s are milliseconds.
	cost := uint64(n)*8*uint64(clock.Millisecond) + uint64(p.part)
	p.at = max(p.at, now-burst) + clock.Time(cost/uint64(p.rate))
	p.part = uint32(cost % uint64(p.rate))
}
