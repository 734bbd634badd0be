package play

import (
	"cmp"
	"context"
	"strings"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/interop/payload"
	"xroce/xsk/xsktest/timeout"
)

// The limits of a case. One on a lossy network waits for retransmissions, those of
// the connection manager among them, which come after seconds.
const (
	usualLimit = 30 * time.Second
	faultLimit = 60 * time.Second
)

// Play runs a case, more than once when it is late. Whatever goes wrong is in the outcome.
// The error is insist's: there is no case after this one.
func (p *Player) Play(ctx context.Context, l *lab.Lab, c cases.Case) (cases.Outcome, error) {
	return p.insist(ctx, func() cases.Outcome { return try(ctx, l, c) }, asHosts(l.Hosts())...)
}

// try runs a case once, for a limited time.
func try(ctx context.Context, l *lab.Lab, c cases.Case) cases.Outcome {
	o := cases.Outcome{Case: c}
	t := cases.ToolOf(c.Tool)
	command, _ := t.Names(c.Role)
	if !l.Has(ctx, command, t.Needs(c)) {
		o.Verdict = cases.Skipped
		o.Reason = "there is no xroce " + strings.Join(append(command[:len(command):len(command)],
			t.Needs(c)), " ")
		return o
	}
	if o.Reason = cmp.Or(t.TheirLack(c), cases.CardLack(c)); o.Reason != "" {
		o.Verdict = cases.Skipped
		return o
	}
	if err := l.SetMTU(ctx, cases.InterfaceMTU(c.MTU)); err != nil {
		o.Verdict, o.Reason = cases.Failed, err.Error()
		return o
	}
	limit := usualLimit
	if c.Fault != cases.NoFault {
		limit = faultLimit
	}
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(limit))
	defer cancel()
	w := &watch{}
	if t.Dumps(c) {
		w.payload = &payload.Payload{}
	}
	w.writer = l.Capture.Begin(c.Name())
	began := time.Now()
	l.Cable.Watch(w.see)
	var wrong string
	switch c.Fault {
	case cases.NoFault:
		wrong, o.Output = talk(ctx, l, t, c)
	case cases.Larger, cases.Fewer, cases.Cut:
		if c.Fault == cases.Cut {
			w.cut()
		}
		wrong, o.Output = talk(ctx, l, t, c)
	case cases.Loss:
		wrong, o.Output = lossy(ctx, l, t, c, w)
	case cases.Restart:
		wrong, o.Output = restart(ctx, l, t, c, w)
	default:
		wrong = reset(ctx, l, t, &o, w)
	}
	l.Cable.Watch(nil)
	o.Seconds, o.Packets, o.Lost = time.Since(began).Seconds(), w.packets, w.lost
	o.Verdict = cases.Passed
	if faults := w.damage(); faults != "" {
		wrong, o.Damaged = faults, true
	}
	if wrong == "" {
		wrong = w.verdict(c)
	}
	if wrong == "" && t.Dumps(c) && !c.Fault.Fails() { // else there is no dump
		var n int
		n, wrong = compare(ctx, l, w)
		o.Compared += n
		o.Damaged = wrong != ""
	}
	if wrong == "" {
		o.Output = ""
		return o
	}
	o.Verdict, o.Reason = cases.Failed, wrong
	o.Late = !o.Damaged && isLate(ctx, o)
	return o
}
