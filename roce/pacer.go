package roce

// A pacer holds requests to a rate: a token bucket that is kept as the time at
// which the next byte is due, and may lie paceBurst in the past.
type pacer struct {
	rate uint32 // kbit/s, 0 for none
	part uint32 // of a nanosecond that is spent beyond at, in 1/rate
	at   Time
}

// paceBurst is how much unused time may be caught up with: enough to make up
// for a late timer, not enough to be seen as a burst.
const paceBurst = 50 * Microsecond

// set changes the rate.
func (p *pacer) set(now Time, kbps uint32) { *p = pacer{rate: kbps, at: now} }

// early reports whether it is too early for a packet.
func (p *pacer) early(now Time) bool { return p.rate != 0 && now < p.at }

// spend notes a frame of n bytes.
func (p *pacer) spend(now Time, n int) {
	if p.rate == 0 {
		return
	}
	// Bits over kbit/s are milliseconds.
	cost := uint64(n)*8*uint64(Millisecond) + uint64(p.part)
	p.at = max(p.at, now-paceBurst) + Time(cost/uint64(p.rate))
	p.part = uint32(cost % uint64(p.rate))
}
