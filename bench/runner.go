package main

import (
	"context"
	"errors"
	"fmt"
	"math/bits"
	"os"
	"slices"
	"sync"
	"time"

	"xroce/bench/machine"
	"xroce/bench/ratio"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/xsk/xsktest/timeout"
)

// A bench is the harness: what the measured processes are made from.
type bench struct {
	self   string // this program, to run workers
	dir    string // scratch directory
	peers  peers
	pairs  int
	quick  bool // the numbers mean nothing
	warmup time.Duration
	window time.Duration

	patience int // doublings of the local ACK timeout, of a quick run on a busy machine

	// Made when they are first asked for: our command, or why there is none; a file of packets
	// to read; why testpmd does not run here; and a place for files in memory.
	command        func() (path, missing string)
	largeCapture   func() (largeCapture, error)
	testpmdMissing func() string
	ram            *ramDisk
}

func newBench(ctx context.Context, f flags) (*bench, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	dir, err := os.MkdirTemp("", "xroce-bench-")
	if err != nil {
		return nil, fmt.Errorf("bench: %w", err)
	}
	b := &bench{
		self: self, dir: dir, pairs: f.pairs, quick: f.quick,
		warmup: min(f.duration/4, 300*time.Millisecond).Round(time.Millisecond),
		window: f.duration.Round(time.Millisecond),
		ram:    &ramDisk{},
	}
	length := int64(captureBytes)
	if b.quick {
		length /= 10
	}
	b.command = sync.OnceValues(func() (string, string) { return buildCommand(ctx, dir) })
	b.largeCapture = sync.OnceValues(func() (largeCapture, error) {
		return writeCapture(dir, length)
	})
	b.testpmdMissing = sync.OnceValue(func() string { return testpmdMissing(ctx) })
	if b.quick {
		b.patience = bits.Len(uint(timeout.Multiplier() - 1))
	}
	if b.peers = f.peers; b.peers != (peers{}) {
		return b, nil
	}
	if b.peers, err = buildPeers(ctx, dir); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// busy is the load average above which the machine is not ours alone.
const busy = 0.3

// close removes the scratch directories.
func (b *bench) close() {
	_ = os.RemoveAll(b.dir)
	b.ram.remove()
}

// measure runs the cases and adds them to the document, as far as it gets. It
// returns what failed.
func (b *bench) measure(ctx context.Context, d *result.Document, cases []benchCase) []error {
	var failures []error
	plan := b.plan(cases)
	progress := newProgress(os.Stderr, plan.rows(), plan.each())
	plan.print(os.Stderr)
	if d.Load > busy {
		progress.say("the load average is %.2f: others are at work, expect void rounds", d.Load)
	}
	for i := range cases {
		c, err := b.measureCase(ctx, &cases[i], progress)
		d.Cases = append(d.Cases, c)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", cases[i].name, err))
		}
		if ctx.Err() != nil {
			return append(failures, errors.New("interrupted"))
		}
	}
	return failures
}

// able are the variants of a case that can run here; skips says why the others
// cannot.
func (b *bench) able(c *benchCase) (able []variant, skips []result.Skip) {
	for _, v := range c.variants {
		why := v.missing
		for _, who := range v.needs {
			if why == "" {
				why = b.missing(who)
			}
		}
		if why == "" {
			able = append(able, v)
			continue
		}
		skips = append(skips, result.Skip{Variant: v.name, Reason: why})
	}
	return able, skips
}

// document is the case as it is stored, without rows. A control or reference that
// cannot run here is replaced by the first variant that can.
func (c *benchCase) document(able []variant, skips []result.Skip) result.Case {
	out := result.Case{
		Name: c.name, Title: c.title, Unit: c.unit, LowerIsBetter: c.lowerIsBetter,
		Lossless: c.lossless, Axis: c.axis, Skipped: skips, Sockets: c.sockets,
	}
	for i, v := range able {
		out.Variants = append(out.Variants, v.name)
		if i == 0 || v.name == c.control {
			out.Control = v.name
		}
		if c.reference != "" && (i == 0 || v.name == c.reference) {
			out.Reference = v.name
		}
		if c.axis != "" && !v.offAxis {
			out.At = append(out.At, result.Point{Variant: v.name, At: v.at})
		}
	}
	return out
}

// measureCase runs all rounds of one case on a stage of its own.
func (b *bench) measureCase(ctx context.Context, c *benchCase, progress *progress) (
	out result.Case, err error,
) {
	able, skips := b.able(c)
	out = c.document(able, skips)
	for _, s := range skips {
		progress.say("%s: %s is skipped: %s", c.name, s.Variant, s.Reason)
	}
	if len(able) == 0 {
		return out, nil
	}
	options := c.stage
	options.Even = b.quick
	st, err := stage.Open(ctx, options)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	out.Settings = st.Settings()
	r := &rounds{bench: b, c: c, stage: st, able: able, out: &out, progress: progress}
	for round := range c.rounds(b.pairs) {
		for _, i := range ratio.Order(len(able), round) {
			r.measure(ctx, b, i, round)
		}
	}
	if b.quick {
		r.again(ctx, againTimes)
	}
	if ctx.Err() == nil {
		r.failures = append(r.failures, silent(&out)...)
		out.Judge()
	}
	return out, errors.Join(r.failures...)
}

// rounds are those of one case on its stage.
type rounds struct {
	bench    *bench
	c        *benchCase
	stage    *stage.Stage
	able     []variant
	out      *result.Case // gets the rows
	progress *progress
	failures []error
}

// measure measures one variant once, as a bench says, unless the context has ended.
func (r *rounds) measure(ctx context.Context, b *bench, i, round int) {
	if ctx.Err() != nil {
		return
	}
	v := r.able[i]
	row := result.Row{Round: round, Variant: v.name, Load: machine.Load()}
	m, err := v.run(ctx, &place{bench: b, Stage: r.stage, c: r.c})
	if ctx.Err() != nil {
		return
	}
	row.Value, row.Loss, row.Workers = m.value, m.loss, m.workers
	if err != nil {
		row.Void = err.Error()
	}
	// A starved machine may leave one short window empty, or make a connection
	// give up; not in all rounds.
	if err != nil && !errors.Is(err, errNothing) && !errors.Is(err, errGaveUp) {
		r.failures = append(r.failures, fmt.Errorf("%s: %w", v.name, err))
	}
	r.out.Rows = append(r.out.Rows, row)
	r.progress.done(r.c, &row)
}

// againTimes is how often a variant is measured again at most: the last window is 64
// times as long, 13 seconds of a quick run.
const againTimes = 6

// again measures the variants that never moved a packet some more times, until each did,
// and says so. Each time the window is twice as long, and so is what a connection waits for an
// acknowledgement. It does not ask how busy the machine was when the run began: it may have
// become so since, and at rest nothing is silent.
func (r *rounds) again(ctx context.Context, times int) {
	longer := *r.bench
	for try := range times {
		names := silentVariants(r.out)
		if len(names) == 0 || ctx.Err() != nil {
			return
		}
		longer.window *= 2
		longer.patience++
		for i, v := range r.able {
			if slices.Contains(names, v.name) {
				r.progress.say("%s: %s moved no packet in any round: tried again for %v", r.c.name,
					v.name, longer.window)
				r.progress.total++
				r.measure(ctx, &longer, i, r.c.rounds(r.bench.pairs)+try)
			}
		}
	}
}

// silent says which variants of a case never moved a packet.
func silent(c *result.Case) []error {
	var failures []error
	for _, name := range silentVariants(c) {
		failures = append(failures, fmt.Errorf("%s: %w in any round", name, errNothing))
	}
	return failures
}

// silentVariants names them.
func silentVariants(c *result.Case) []string {
	var names []string
	for _, name := range c.Variants {
		if !slices.ContainsFunc(c.Rows, func(r result.Row) bool {
			return r.Variant == name && r.Value > 0
		}) {
			names = append(names, name)
		}
	}
	return names
}
