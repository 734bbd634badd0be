package play

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/dialogue"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/softroce"
	"xroce/roce/wire"
	"xroce/xsk/xsktest/timeout"
)

// Trace runs each scenario between two Soft-RoCE hosts and between one and xroce, compares
// what the end said that xroce took over, and tells what came of it. The error is about the hosts,
// not about a case.
func (p *Player) Trace(
	ctx context.Context, l *lab.Lab, list []cases.Case, tell func(cases.Outcome),
) (err error) {
	if len(list) == 0 {
		return nil
	}
	pair, err := lab.OpenPair(ctx, l.Image)
	if err != nil {
		return fmt.Errorf(ofReference+"%w", err)
	}
	defer func() { err = errors.Join(err, pair.Close()) }()
	for _, c := range list {
		mtu := cases.InterfaceMTU(c.MTU)
		if err := errors.Join(l.SetMTU(ctx, mtu), pair.SetMTU(ctx, mtu)); err != nil {
			return err
		}
		o, err := p.insist(ctx, func() cases.Outcome { return traceCase(ctx, l, pair, c) },
			asHosts(l.Hosts(), pair.Hosts())...)
		tell(o)
		if err != nil {
			return err
		}
	}
	return nil
}

// ofReference begins the reason of a case that failed without xroce.
const ofReference = "the reference: "

// traceCase compares one scenario.
func traceCase(ctx context.Context, l *lab.Lab, pair *lab.Pair, c cases.Case) cases.Outcome {
	o := cases.Outcome{Case: c, Verdict: cases.Passed}
	t := cases.ToolOf(c.Tool)
	command, _ := t.Names(c.Role)
	if !l.Has(ctx, command, t.Needs(c)) {
		o.Verdict, o.Reason = cases.Skipped, "there is no xroce "+strings.Join(command, " ")
		return o
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, timeout.Scaled(usualLimit))
	defer cancel()
	want, got := dialogue.New(), dialogue.New()
	pair.Cable.Watch((&watch{each: into(want)}).see)
	wrong, output := reference(ctx, pair, t, c)
	want.Rest(ctx)
	pair.Cable.Watch(nil)
	if wrong != "" {
		o.Verdict, o.Reason, o.Output = cases.Failed, ofReference+wrong, output
		// xroce had no part in it: perftest's client with rdma_cm crashes now and then, the
		// more often the busier the machine is.
		o.Late = true
		return o
	}
	w := &watch{writer: l.Capture.Begin(o.Case.Name()), each: into(got)}
	l.Cable.Watch(w.see)
	wrong, output = talk(ctx, l, t, c)
	got.Rest(ctx)
	l.Cable.Watch(nil)
	if faults := w.damage(); faults != "" {
		wrong, o.Damaged = faults, true
	}
	if wrong == "" {
		wrong = w.verdict(c)
	}
	o.Seconds, o.Packets = time.Since(began).Seconds(), w.packets
	o.Differences = got.Compare(want, softroce.A)
	if d := dialogue.Unexplained(c.Tool, o.Differences); d != nil && wrong == "" {
		wrong = fmt.Sprintf("%s is %s, with Soft-RoCE %s", d.What, d.Ours, d.Reference)
	}
	if wrong != "" {
		o.Verdict, o.Reason, o.Output = cases.Failed, wrong, output
		o.Late = !o.Damaged && isLate(ctx, o)
	}
	return o
}

// into has a dialogue take the packets of a watch.
func into(d *dialogue.Dialogue) func(softroce.End, *wire.Packet) bool {
	return func(from softroce.End, p *wire.Packet) (lose bool) {
		d.Add(from, p)
		return false
	}
}
