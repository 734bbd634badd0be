package recovery

import "xroce/roce/clock"

// How long a gap may stay open before it is called a loss, where packets may
// overtake each other.
const (
	reorderPackets = 64                      // packets that overtook
	reorderDelay   = 100 * clock.Microsecond // since the first of them
)

// A Gap is the wait for packets that are missing before some that have come. With a
// reorder window it may close by itself for a while; without, it is a loss at once.
type Gap struct {
	overtake int        // so many packets may overtake a missing one
	deadline clock.Time // when it becomes a loss, 0 for never
}

// NewGap returns a gap that is closed.
func NewGap(reorder bool) Gap {
	if reorder {
		return NewGapOf(reorderPackets)
	}
	return Gap{}
}

// NewGapOf returns one that is a loss when so many packets have overtaken a missing one, or
// after the time that every gap has.
func NewGapOf(packets int) Gap { return Gap{overtake: packets} }

// Lost reports whether a gap that overtaken packets have overtaken is a loss. When it
// may still close, it gets a deadline.
func (g *Gap) Lost(now clock.Time, overtaken int) bool {
	if overtaken >= g.overtake {
		g.deadline = 0
		return true
	}
	if g.deadline == 0 {
		g.deadline = now + reorderDelay
	}
	return false
}

// Close says that nothing is missing, or that it was called a loss.
func (g *Gap) Close() { g.deadline = 0 }

// Deadline returns when the gap becomes a loss, 0 for never.
func (g *Gap) Deadline() clock.Time { return g.deadline }

// Expired reports whether the deadline has come, and closes the gap then.
func (g *Gap) Expired(now clock.Time) bool {
	if g.deadline == 0 || now < g.deadline {
		return false
	}
	g.deadline = 0
	return true
}
