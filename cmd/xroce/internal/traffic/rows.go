package traffic

import (
	"sync/atomic"

	"xroce/roce/clock"
)

// A Row is what came of an interval.
type Row struct {
	From, To      clock.Time // since the begin
	Frames, Bytes uint64
	Lost          uint64 // of a Sink: more than in the row before
}

// Rows tell while frames are sent what comes of it.
type Rows struct {
	// Interval is how often Row is called with what came of the time since, 0 for never.
	Interval clock.Time
	Row      func(Row)

	sent *tally // by all who share it
	told Row    // from the begin to the last row
}

// A tally is what was sent.
type tally struct{ frames, bytes atomic.Uint64 }

// add notes what was sent.
func (r *Rows) add(frames, bytes uint64) {
	if r.sent == nil {
		r.sent = &tally{}
	}
	r.sent.frames.Add(frames)
	r.sent.bytes.Add(bytes)
}

// tell tells a row when an interval is over.
func (r *Rows) tell(now clock.Time) {
	if r.Interval > 0 && now-r.told.To >= r.Interval {
		r.tellNow(now)
	}
}

// tellNow tells what came since the last row.
func (r *Rows) tellNow(now clock.Time) {
	r.add(0, 0)
	last := r.told
	r.told = Row{To: now, Frames: r.sent.frames.Load(), Bytes: r.sent.bytes.Load()}
	r.Row(Row{
		From: last.To, To: now, Frames: r.told.Frames - last.Frames,
		Bytes: r.told.Bytes - last.Bytes,
	})
}

// until is how long to sleep: not past the next row.
func (r *Rows) until(d, now clock.Time) clock.Time {
	if r.Interval > 0 {
		d = min(d, max(1, r.told.To+r.Interval-now))
	}
	return d
}

// tellRest tells the row that is not full, when there is something in it.
func (r *Rows) tellRest(now clock.Time) {
	if r.Interval > 0 && r.sent != nil && r.sent.frames.Load() > r.told.Frames {
		r.tellNow(now)
	}
}
