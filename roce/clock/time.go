package clock

// Time is a point of monotonic time in nanoseconds since any origin, not
// negative. It is passed in by the caller; see the package comment. As a deadline,
// 0 stands for never.
type Time int64

// Durations in units of Time.
const (
	Nanosecond  Time = 1
	Microsecond      = 1000 * Nanosecond
	Millisecond      = 1000 * Microsecond
	Second           = 1000 * Millisecond
)

// Sooner returns the earlier of two deadlines, of which 0 is never.
func Sooner(a, b Time) Time {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
