package sim

import (
	"sync/atomic"

	"xroce/roce"
)

// A VirtualClock stands still until it is told to advance. The zero value is at
// time 0. It is safe for concurrent use.
type VirtualClock struct{ now atomic.Int64 }

// Now returns the virtual time.
func (c *VirtualClock) Now() roce.Time { return roce.Time(c.now.Load()) }

// AdvanceTo moves the clock to t, never back.
func (c *VirtualClock) AdvanceTo(t roce.Time) {
	if t > c.Now() {
		c.now.Store(int64(t))
	}
}
