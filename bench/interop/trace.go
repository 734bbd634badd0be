package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"xroce/bench/softroce"
	"xroce/roce/wire"
)

// scenarios are the dialogues that are compared: tools that wait for each message
// before they send the next, so that time does not choose the order.
func scenarios() []Case {
	var cases []Case
	for _, c := range []Case{
		{Tool: "ibv_rc_pingpong", Transport: "RC", Size: 5000},
		{Tool: "ibv_uc_pingpong", Transport: "UC", Size: 5000},
		{Tool: "ibv_ud_pingpong", Transport: "UD", Size: 101},
		{Tool: "ib_send_lat", Transport: "RC", Size: 5000},
		{Tool: "ib_write_lat", Transport: "RC", Size: 5000},
		{Tool: "ib_read_lat", Transport: "RC", Size: 5000},
		{Tool: "ib_atomic_lat", Transport: "RC"},
		{Tool: "rping", Transport: "RC", CM: true, Size: 101},
	} {
		c.MTU, c.Family, c.Trace = 1024, 4, true
		for _, c.Role = range roles {
			cases = append(cases, c)
		}
	}
	return cases
}

// trace runs each scenario between two Soft-RoCE hosts and between one and
// xroce, and compares what the end said that xroce took over.
func (l *lab) trace(ctx context.Context, cases []Case, tell func(Outcome)) (err error) {
	if len(cases) == 0 {
		return nil
	}
	pair, err := openPair(ctx, l.image)
	if err != nil {
		return fmt.Errorf("the reference: %w", err)
	}
	defer func() { err = errors.Join(err, pair.close()) }()
	if err := l.setMTU(ctx, interfaceMTU(1024)); err != nil {
		return err
	}
	for _, c := range cases {
		tell(l.traceCase(ctx, pair, c))
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// traceCase compares one scenario.
func (l *lab) traceCase(ctx context.Context, pair *pair, c Case) Outcome {
	o := Outcome{Case: c, Verdict: passed}
	t := toolOf(c.Tool)
	command, _ := t.names(c.Role)
	if !l.has(ctx, command, t.needs(c)) {
		o.Verdict, o.Reason = skipped, "there is no xroce "+strings.Join(command, " ")
		return o
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(ctx, usualLimit)
	defer cancel()
	want, got := newDialogue(), newDialogue()
	pair.cable.Watch((&watch{each: want.watch}).see)
	wrong, output := pair.talk(ctx, t, c)
	pair.cable.Watch(nil)
	if wrong != "" {
		o.Verdict, o.Reason, o.Output = failed, "the reference: "+wrong, output
		return o
	}
	w := &watch{writer: l.writer, each: got.watch}
	l.firsts = append(l.firsts, first{packet: l.writer.Frames() + 1, name: o.Case.Name()})
	l.cable.Watch(w.see)
	wrong, output = l.talk(ctx, t, c)
	l.cable.Watch(nil)
	if wrong == "" {
		wrong = w.verdict(c)
	}
	o.Seconds, o.Packets = time.Since(began).Seconds(), w.packets
	o.Differences = got.compare(want, softroce.A)
	for _, d := range o.Differences {
		if explanation(d.What) == "" && wrong == "" {
			wrong = fmt.Sprintf("%s is %s, with Soft-RoCE %s", d.What, d.Ours, d.Reference)
		}
	}
	if wrong != "" {
		o.Verdict, o.Reason, o.Output = failed, wrong, output
	}
	return o
}

// watch takes a packet of a watch.
func (d *dialogue) watch(from softroce.End, p *wire.Packet) (lose bool) {
	d.add(from, p)
	return false
}

// explained are the differences that are known, by what differs, with the reason
// that docs/interop.md gives.
var explained = []struct{ what, why string }{
	{
		"BTH.MigReq",
		"The bit is the state of automatic path migration, and 1 is \"migrated\", the " +
			"normal one. rdma_rxe always sends 0 and takes either. We send 1, because " +
			"adapters have been reported to take packets with 0 on a slower way.",
	},
	{
		"AETH.Syndrome",
		"An acknowledgement tells how many receives are posted (IBA 9.7.7.2), so that a " +
			"requester need not run into RNR NAKs. rdma_rxe says that it does not count, " +
			"and ignores the count of others.",
	},
	{
		coalescedAcks,
		"An acknowledgement covers all packets before its own (IBA 9.7.5.1), so their " +
			"number depends on time: we send one for all that came in a burst, and either " +
			"end sends one more for a packet that was repeated. It may differ from run to " +
			"run; the last one must be the same.",
	},
}

// explanation is why a difference is none to worry about, "" when nobody knows.
func explanation(what string) string {
	for _, e := range explained {
		if e.what == what {
			return e.why
		}
	}
	return ""
}
