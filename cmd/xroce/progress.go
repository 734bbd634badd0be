package main

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// When progress is shown.
const (
	progressAfter    = 2 * time.Second        // shorter work shows none
	progressRedraw   = 200 * time.Millisecond // on a terminal
	progressInterval = 10 * time.Second       // elsewhere
)

// A progress tells how a transfer goes, on one line that is written over when
// out is a terminal, else on a line every ten seconds. Not safe for concurrent
// use.
type progress struct {
	out      io.Writer
	terminal bool
	what     string
	steps    bool // counts steps, not bytes
	now      func() time.Time
	start    time.Time
	next     time.Time
	width    int // of the line that is on the terminal
}

// progress begins to tell about something that is measured in bytes, or steps.
func (a *app) progress(what string, steps bool) *progress {
	return newProgress(a.stderr, isTerminal(a.stderr), what, steps, a.now)
}

func newProgress(
	out io.Writer, terminal bool, what string, steps bool, now func() time.Time,
) *progress {
	p := &progress{
		out: out, terminal: terminal, what: what, steps: steps, now: now, start: now(),
	}
	p.next = p.start.Add(progressInterval)
	if terminal {
		p.next = p.start.Add(progressAfter)
	}
	return p
}

// update tells that done of total bytes are through.
func (p *progress) update(done, total int64) {
	now := p.now()
	if now.Before(p.next) {
		return
	}
	elapsed := now.Sub(p.start)
	rate := float64(done) / elapsed.Seconds()
	eta := "unknown"
	if done > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		eta = left.Round(time.Second).String()
	}
	amount := fmt.Sprintf("%s of %s, %.2f Gb/s", byteCount(done), byteCount(total), rate*8/1e9)
	if p.steps {
		amount = fmt.Sprintf("%d of %d, %.1f/s", done, total, rate)
	}
	line := fmt.Sprintf("%s: %s, %.0f %%, ETA %s", p.what, amount,
		100*float64(done)/float64(max(total, 1)), eta)
	if !p.terminal {
		fmt.Fprintln(p.out, line)
		p.next = now.Add(progressInterval)
		return
	}
	fmt.Fprintf(p.out, "\r%-*s", p.width, line)
	p.width = len(line)
	p.next = now.Add(progressRedraw)
}

// close wipes the line.
func (p *progress) close() {
	if p.width > 0 {
		fmt.Fprintf(p.out, "\r%s\r", strings.Repeat(" ", p.width))
		p.width = 0
	}
}

// byteCount prints a number of bytes with a binary unit.
func byteCount(n int64) string {
	const units = "KMGTPE"
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n)/1024, 0
	for v >= 1024 && unit < len(units)-1 {
		v, unit = v/1024, unit+1
	}
	return fmt.Sprintf("%.1f %ciB", v, units[unit])
}
