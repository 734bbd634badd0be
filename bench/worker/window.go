package worker

import "time"

// Quiet is how long nothing must come before a receiver whose window is over
// believes that the sender is done.
const Quiet = 200 * time.Millisecond

// Drain is how long a sender waits until what it queued is sent. A machine that is
// not busy needs some milliseconds.
const Drain = 2 * time.Second

// A Window is the part of a run that counts: it opens after the warm-up, and
// each border is noted when the worker comes by, so that packets and seconds
// belong together.
//
// What the process used within the window is read at its borders.
//
// Its clock counts from the plan on. Reading it costs one call of the vDSO, where
// time.Now costs two: that shows in a round trip.
type Window struct {
	start            time.Time
	begin, end       time.Duration
	opened, closed   time.Duration
	isOpen, isClosed bool
	atOpen, atClosed uint64
	meter            *meter
}

// NewWindow plans a window from now on.
func NewWindow(o Options) *Window {
	m := newMeter(cpuCycles)
	return &Window{start: time.Now(), begin: o.Warmup, end: o.Warmup + o.Window, meter: m}
}

// Now is the time since the window was planned.
func (w *Window) Now() time.Duration { return time.Since(w.start) }

// Tick is called with the time and the packets so far, once per batch. It
// returns false from the end of the window on.
func (w *Window) Tick(now time.Duration, packets uint64) bool {
	if !w.isOpen && now >= w.begin {
		w.isOpen, w.opened, w.atOpen = true, now, packets
		w.meter.read()
	}
	if now < w.end {
		return true
	}
	w.close(now, packets)
	return false
}

// Close closes the window now, because there is nothing more to measure.
func (w *Window) Close(packets uint64) {
	now := w.Now()
	if !w.isOpen {
		w.isOpen, w.opened, w.atOpen = true, now, packets
		w.meter.read()
	}
	w.close(now, packets)
}

func (w *Window) close(now time.Duration, packets uint64) {
	if w.isClosed {
		return
	}
	w.isClosed, w.closed, w.atClosed = true, now, packets
	w.meter.read()
	w.meter.close()
}

// Open reports whether the warm-up is over.
func (w *Window) Open() bool { return w.isOpen }

// Packets are those within the closed window.
func (w *Window) Packets() uint64 { return w.atClosed - w.atOpen }

// Seconds is the true length of the closed window.
func (w *Window) Seconds() float64 { return (w.closed - w.opened).Seconds() }

// Cost is what the process used within the closed window, nil before it is.
func (w *Window) Cost() *Cost { return w.meter.cost() }
