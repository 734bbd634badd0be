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

// trace runs each scenario between two Soft-RoCE hosts and between one and
// xroce, and compares what the end said that xroce took over.
func (l *lab) trace(ctx context.Context, cases []Case, tell func(Outcome)) (err error) {
	if len(cases) == 0 {
		return nil
	}
	pair, err := openPair(ctx, l.image)
	if err != nil {
		return fmt.Errorf(ofReference+"%w", err)
	}
	defer func() { err = errors.Join(err, pair.close()) }()
	for _, c := range cases {
		mtu := interfaceMTU(c.MTU)
		if err := errors.Join(l.setMTU(ctx, mtu), pair.setMTU(ctx, mtu)); err != nil {
			return err
		}
		o := l.traceCase(ctx, pair, c)
		if strings.HasPrefix(o.Reason, ofReference) && ctx.Err() == nil {
			// perftest's client with rdma_cm crashes now and then.
			o = l.traceCase(ctx, pair, c).after(o)
		}
		tell(o)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return err
}

// ofReference begins the reason of a case that failed without xroce.
const ofReference = "the reference: "

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
	want.rest(ctx)
	pair.cable.Watch(nil)
	if wrong != "" {
		o.Verdict, o.Reason, o.Output = failed, ofReference+wrong, output
		return o
	}
	w := &watch{writer: l.writer, each: got.watch}
	l.firsts = append(l.firsts, first{packet: l.writer.Frames() + 1, name: o.Case.Name()})
	l.cable.Watch(w.see)
	wrong, output = l.talk(ctx, t, c)
	got.rest(ctx)
	l.cable.Watch(nil)
	if wrong == "" {
		wrong = w.verdict(c)
	}
	o.Seconds, o.Packets = time.Since(began).Seconds(), w.packets
	o.Differences = got.compare(want, softroce.A)
	if d := unexplained(c, o.Differences); d != nil && wrong == "" {
		wrong = fmt.Sprintf("%s is %s, with Soft-RoCE %s", d.What, d.Ours, d.Reference)
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

// restTime is how long a dialogue may take to end after its programs: as long as
// the answer to a DREQ may take that nobody waits for.
const restTime = 2 * time.Second

// rest waits until the connections that were made are ended by both sides, as hosts
// do by themselves when their programs are over.
func (d *dialogue) rest(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, restTime)
	defer cancel()
	for {
		d.mu.Lock()
		hanging, more := len(d.hanging), d.more
		d.mu.Unlock()
		if hanging == 0 {
			return
		}
		select {
		case <-more:
		case <-ctx.Done():
			return // and what is missing is told
		}
	}
}
