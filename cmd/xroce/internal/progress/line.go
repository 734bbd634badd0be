package progress

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// When progress is shown.
const (
	showAfter   = 2 * time.Second        // shorter work shows none
	redrawEvery = 200 * time.Millisecond // on a terminal
	lineEvery   = 10 * time.Second       // elsewhere
)

// A Line tells how a transfer goes, on one line that is written over when
// out is a terminal, else on a line every ten seconds. Not safe for concurrent
// use.
type Line struct {
	out      io.Writer
	terminal bool
	what     string
	steps    bool // counts steps, not bytes
	now      func() time.Time
	start    time.Time
	base     int64 // what was there at the start: it is not of the rate
	next     time.Time
	width    int // of the line that is on the terminal
}

// New begins to tell, on out, about something that is measured in bytes, or in steps.
// terminal says that a line on out can be written over, and now is the clock.
func New(out io.Writer, terminal bool, what string, steps bool, now func() time.Time) *Line {
	l := &Line{
		out: out, terminal: terminal, what: what, steps: steps, now: now, start: now(),
	}
	l.next = l.start.Add(lineEvery)
	if terminal {
		l.next = l.start.Add(showAfter)
	}
	return l
}

// From says that so much was there before, and that what comes is measured from now on.
func (l *Line) From(done int64) { l.start, l.base = l.now(), done }

// Update tells that done of total bytes are through.
func (l *Line) Update(done, total int64) {
	now := l.now()
	if now.Before(l.next) {
		return
	}
	elapsed := now.Sub(l.start)
	rate := float64(done-l.base) / elapsed.Seconds()
	eta := "unknown"
	if done > l.base {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		eta = left.Round(time.Second).String()
	}
	amount := fmt.Sprintf("%s of %s, %.2f Gb/s", Bytes(done), Bytes(total), rate*8/1e9)
	if l.steps {
		amount = fmt.Sprintf("%d of %d, %.1f/s", done, total, rate)
	}
	line := fmt.Sprintf("%s: %s, %.0f %%, ETA %s", l.what, amount,
		100*float64(done)/float64(max(total, 1)), eta)
	if !l.terminal {
		fmt.Fprintln(l.out, line)
		l.next = now.Add(lineEvery)
		return
	}
	fmt.Fprintf(l.out, "\r%-*s", l.width, line)
	l.width = len(line)
	l.next = now.Add(redrawEvery)
}

// Close wipes the line.
func (l *Line) Close() {
	if l.width > 0 {
		fmt.Fprintf(l.out, "\r%s\r", strings.Repeat(" ", l.width))
		l.width = 0
	}
}
