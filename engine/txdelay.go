package engine

import "xroce/roce"

// A txDelay knows when frames that were written at some time had left: how long they
// waited in the transmit ring, and how long the loop was stopped between the clock and
// the end of the flush. The time that QPs start their timers from is read before
// packets are written, once a round; what it costs to know better is paid only where a
// timer has run out.
type txDelay struct {
	open  bool      // something was written that is not known to have left
	since roce.Time // when the first of that was written
	// delays are the last that were long.
	delays [8]delay
	n      uint // how many there ever were
}

// A delay is a time from which on, and one at which no more, frames waited to leave.
type delay struct{ from, to roce.Time }

// longDelay is from when on a delay is kept. A burst takes about as long to send.
const longDelay = 100 * roce.Microsecond

// wrote notes that frames were written in the round of a time.
func (x *txDelay) wrote(now roce.Time) {
	if !x.open {
		x.open, x.since = true, now
	}
}

// left notes that all frames have left.
func (x *txDelay) left(now roce.Time) {
	x.open = false
	if now-x.since >= longDelay {
		x.delays[x.n%uint(len(x.delays))] = delay{x.since, now}
		x.n++
	}
}

// by returns when a frame that was written at a time, not after now, had left for
// sure: at, if nothing is known of a delay, and now if it may not have left yet.
func (x *txDelay) by(at, now roce.Time) roce.Time {
	if x.open && at >= x.since {
		return now
	}
	for _, d := range x.delays {
		if d.from <= at && at < d.to {
			return d.to
		}
	}
	return at
}
