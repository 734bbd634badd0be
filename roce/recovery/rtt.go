package recovery

import (
	"math"

	"xroce/roce/clock"
)

// An RTT is an estimate of the round trip (RFC 6298), in nanoseconds. The zero value has no
// sample. What takes longer than some 2 s counts as that: every queue pair has one, so it is
// small.
type RTT struct {
	smoothed, variation int32
}

// Sample takes one round trip into the average (RFC 6298, 2.2 and 2.3).
func (e *RTT) Sample(t clock.Time) {
	n := int32(min(t, math.MaxInt32))
	if e.smoothed == 0 {
		e.smoothed, e.variation = n, n/2
		return
	}
	e.variation += (max(n-e.smoothed, e.smoothed-n) - e.variation) / 4
	e.smoothed += (n - e.smoothed) / 8
}

// Smoothed returns the average, 0 before the first sample.
func (e *RTT) Smoothed() clock.Time { return clock.Time(e.smoothed) }

// RTO returns the average and four times its variation, without a least value; 0
// before the first sample.
func (e *RTT) RTO() clock.Time { return clock.Time(e.smoothed) + 4*clock.Time(e.variation) }
