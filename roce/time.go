package roce

// Time is a point of monotonic time in nanoseconds since any origin, not
// negative. It is passed in by the caller; see the package comment.
type Time int64

// Durations in units of Time.
const (
	Nanosecond  Time = 1
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
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
