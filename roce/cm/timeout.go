package cm

import "xroce/roce/clock"

// Implementation constants of time.
const (
	// minTimeout is the smallest timeout code of a peer that is believed, 0.3 s: who asks may be
	// somebody else, and the answer that he does not confirm is repeated up to 15 times. Linux
	// asks for 20.
	minTimeout = 16
	// maxTimeout is the largest timeout code of a peer that is believed, 16.8 s:
	// a foreign number must not pin memory for hours.
	maxTimeout = 22
	// maxAckTimeout is the largest local ACK timeout code that a peer can give a queue pair of
	// ours, 4.3 s: with all retries one that is gone is found out within 34 s. Linux asks for
	// 19, and a larger one is for adapters that take long to acknowledge: what is repeated
	// before they do is a duplicate, and hears them.
	maxAckTimeout = 20
	// maxService is the same for the service timeout of an MRA, 68.7 s. It is the
	// one that Linux sends.
	maxService = 24
	// timewaitExtra is what a time-wait lasts beyond the packets' life.
	timewaitExtra = clock.Millisecond
	// requestLife is how long a request waits for the application. Peers give up
	// before: 15 retries of 4.6 s and one MRA of 68.7 s.
	requestLife = 180 * clock.Second
)

// timeoutOf is the duration of a timeout code as Linux has it: 4.096 us * 2^n
// rounded to a power of two of milliseconds, at least one (kernel
// drivers/infiniband/core/cm.c, cm_convert_to_ms).
func timeoutOf(code uint8) clock.Time {
	return clock.Millisecond << max(int(code&31)-8, 0)
}

// AckTimeout is the local ACK timeout code of a path with a packet life time code
// to a peer that delays ACKs by a code: 2^n about twice the one and the other
// (IBA 12.7.34), 31 at most.
func AckTimeout(life, delay uint8) uint8 {
	twice := life + 1
	code := max(twice, delay)
	if min(twice, delay)+1 >= code {
		code++ // of about the same size: the sum is twice that
	}
	return min(code, 31)
}

// believed is what counts of a local ACK timeout code that a peer has a part in: more than
// maxAckTimeout is only for who has it himself, by a code of his own.
func believed(code, own uint8) uint8 { return min(code, max(own, maxAckTimeout)) }
