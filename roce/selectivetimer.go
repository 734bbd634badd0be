package roce

import "xroce/roce/clock"

// This file has the deadlines of selective repeat.

func (x *selectiveRepeat) deadline() Time {
	return clock.Sooner(x.probe.Deadline(), x.gap.Deadline())
}

// handleDeadline treats a gap that stayed open too long as a loss, and sends a tail
// probe when nothing came for too long.
func (x *selectiveRepeat) handleDeadline(now Time) {
	if x.gap.Expired(now) {
		x.repeatData(now)
	}
	if at := x.probe.Deadline(); at != 0 && now >= at {
		x.probeTail(now)
	}
}
