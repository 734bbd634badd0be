package engine

import (
	"time"

	"xroce/roce"
)

// A Clock tells monotonic time. A simulated network brings its own.
type Clock interface{ Now() roce.Time }

// systemClock counts nanoseconds since it was made. It is the one place of the
// engine that reads the time of the machine.
type systemClock struct{ start time.Time }

// NewSystemClock returns the clock that devices use by default.
func NewSystemClock() Clock { return systemClock{time.Now()} }

// Now returns the time of the device's clock, that which services are told.
func (d *Device) Now() roce.Time { return d.options.Clock.Now() }

// Now implements Clock.
func (c systemClock) Now() roce.Time { return roce.Time(time.Since(c.start)) }
