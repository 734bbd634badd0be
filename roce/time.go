package roce

import "xroce/roce/clock"

// Time is a point of monotonic time; see clock.Time.
type Time = clock.Time

// Durations in units of Time.
const (
	Nanosecond  = clock.Nanosecond
	Microsecond = clock.Microsecond
	Millisecond = clock.Millisecond
	Second      = clock.Second
)

// ackTimeoutUnit is the unit of the local ACK timeout (IBA 9.7.6.1.3).
const ackTimeoutUnit = 4096 * Nanosecond

// ackTimeout returns 4.096 us * 2^code, 0 (no timer) for code 0.
func ackTimeout(code uint8) Time {
	if code == 0 {
		return 0
	}
	return ackTimeoutUnit << (code & 31)
}
