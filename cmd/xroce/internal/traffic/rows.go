package traffic

import "xroce/roce/clock"

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

	row Row // that grows
}

// tell calls Row when an interval is over.
func (r *Rows) tell(now clock.Time) {
	if r.Interval == 0 || now-r.row.From < r.Interval {
		return
	}
	r.row.To = now
	r.Row(r.row)
	r.row = Row{From: now}
}

// until is how long to sleep: not past the next row.
func (r *Rows) until(d, now clock.Time) clock.Time {
	if r.Interval > 0 {
		d = min(d, max(1, r.row.From+r.Interval-now))
	}
	return d
}

// tellRest tells the row that is not full, when there is something in it.
func (r *Rows) tellRest(now clock.Time) {
	if r.Interval > 0 && r.row.Frames > 0 {
		r.row.To = now
		r.Row(r.row)
	}
}
