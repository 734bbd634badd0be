package engine

import "xroce/roce"

// A handover knows when frames that were written at some time had left: how long they
// waited in the transmit ring, and how long the loop was stopped between the clock and
// the end of the flush. The time that QPs start their timers from is read before
// packets are written, once a round; what it costs to know better is paid only where a
// timer has run out.
type handover struct {
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
func (h *handover) wrote(now roce.Time) {
	if !h.open {
		h.open, h.since = true, now
	}
}

// left notes that all frames have left.
func (h *handover) left(now roce.Time) {
	h.open = false
	if now-h.since >= longDelay {
		h.delays[h.n%uint(len(h.delays))] = delay{h.since, now}
		h.n++
	}
}

// by returns when a frame that was written at a time, not after now, had left for
// sure: at, if nothing is known of a delay, and now if it may not have left yet.
func (h *handover) by(at, now roce.Time) roce.Time {
	if h.open && at >= h.since {
		return now
	}
	for _, d := range h.delays {
		if d.from <= at && at < d.to {
			return d.to
		}
	}
	return at
}
