package roce

import "xroce/roce/counter"

// This file lets the send queue wait for a page.

// stallTime is how long to wait when pages were absent so many times before.
func stallTime(before uint8) Time { return min(firstStall<<before, lastStall) }

// stall lets the send queue wait for a page.
func (r *requester) stall(now Time) {
	if r.stalled {
		return
	}
	r.count.Inc(counter.PageStalls)
	r.stalled, r.mark = true, now+stallTime(r.stalls)
	r.stalls = min(r.stalls+1, mostMisses)
	if r.psn == r.una {
		r.ackAt = 0 // nothing is under way that the peer could acknowledge
	}
}
