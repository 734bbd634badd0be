package traffic

import (
	"context"
	"runtime"
	"time"

	"xroce/roce/clock"
)

// A Clock is the time of a Sender and of Collect.
type Clock interface {
	// Now is monotonic time since some begin.
	Now() clock.Time
	// Wall is the time that signatures carry, in nanoseconds: one that both ends know.
	Wall() int64
	// Sleep returns after a while, or sooner when the context ends.
	Sleep(ctx context.Context, d clock.Time)
}

// System is the clock of the machine.
type System struct {
	start time.Time
	spin  bool
}

// NewSystem makes a clock that begins now. With spin it never sleeps, which is more exact and
// takes all of a CPU.
func NewSystem(spin bool) *System { return &System{time.Now(), spin} }

// Now implements Clock.
func (s *System) Now() clock.Time { return clock.Time(time.Since(s.start)) }

// Wall implements Clock with the time of day.
func (*System) Wall() int64 { return time.Now().UnixNano() }

// shortSleep is what a sleep takes at the least on most machines; less is spun.
const shortSleep = 20 * clock.Microsecond

// longSleep bounds a sleep that does not see the context.
const longSleep = 10 * clock.Millisecond

// Sleep implements Clock.
func (s *System) Sleep(_ context.Context, d clock.Time) {
	if s.spin || d < shortSleep {
		runtime.Gosched()
		return
	}
	time.Sleep(time.Duration(min(d, longSleep)))
}
