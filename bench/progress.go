package main

import (
	"fmt"
	"io"
	"time"

	"xroce/bench/result"
)

// progress tells people how far the run is.
type progress struct {
	out   io.Writer
	total int           // rows to measure
	rows  int           // rows measured
	guess time.Duration // of one row, until there are measured ones
	begin time.Time
	now   func() time.Time
}

func newProgress(out io.Writer, total int, guess time.Duration) *progress {
	p := &progress{out: out, total: total, guess: guess, now: time.Now}
	p.begin = p.now()
	return p
}

// say prints a line.
func (p *progress) say(format string, args ...any) { fmt.Fprintf(p.out, format+"\n", args...) }

// left is the expected time until the last row.
func (p *progress) left() time.Duration {
	each := p.guess
	if p.rows > 0 {
		each = p.now().Sub(p.begin) / time.Duration(p.rows)
	}
	return (time.Duration(p.total-p.rows) * each).Round(time.Second)
}

// done notes a measured row.
func (p *progress) done(c *benchCase, r *result.Row) {
	p.rows++
	note := ""
	if r.Void != "" {
		note = "  VOID: " + r.Void
	} else if r.Loss > 0 {
		note = fmt.Sprintf("  lost %.3g %%", 100*r.Loss)
	}
	p.say("[%*d/%d] %-16s round %d  %-24s %12.0f %s%s  (%v left)", len(fmt.Sprint(p.total)),
		p.rows, p.total, c.name, r.Round+1, r.Variant, r.Value, c.unit, note, p.left())
}
