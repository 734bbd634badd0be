package recovery

import "xroce/roce/clock"

// An RTT is an estimate of the round trip (RFC 6298). The zero value has no sample.
type RTT struct {
	smoothed, variation clock.Time
}

// Sample takes one round trip into the average (RFC 6298, 2.2 and 2.3).
func (e *RTT) Sample(t clock.Time) {
	if e.smoothed == 0 {
		e.smoothed, e.variation = t, t/2
		return
	}
	e.variation += (max(t-e.smoothed, e.smoothed-t) - e.variation) / 4
	e.smoothed += (t - e.smoothed) / 8
}

// Smoothed returns the average, 0 before the first sample.
func (e *RTT) Smoothed() clock.Time { return e.smoothed }

// RTO returns the average and four times its variation, without a least value; 0
// before the first sample.
func (e *RTT) RTO() clock.Time { return e.smoothed + 4*e.variation }
