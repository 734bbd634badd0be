package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"xroce/bench/machine"
	"xroce/bench/ratio"
	"xroce/bench/result"
	"xroce/bench/stage"
)

// A bench is the harness: what the measured processes are made from.
type bench struct {
	self   string // this program, to run workers
	dir    string // scratch directory
	peers  peers
	pairs  int
	warmup time.Duration
	window time.Duration
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
		self: self, dir: dir, pairs: f.pairs,
		warmup: min(f.duration/4, 300*time.Millisecond).Round(time.Millisecond),
		window: f.duration.Round(time.Millisecond),
	}
	if b.peers, err = buildPeers(ctx, dir); err != nil {
		b.close()
		return nil, err
	}
	return b, nil
}

// busy is the load average above which the machine is not ours alone.
const busy = 0.3

// close removes the scratch directory.
func (b *bench) close() { _ = os.RemoveAll(b.dir) }

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
	st, err := stage.Open(ctx, c.stage)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	out.Settings = st.Settings()
	var failures []error
	for round := range c.rounds(b.pairs) {
		for _, i := range ratio.Order(len(able), round) {
			row := result.Row{Round: round, Variant: able[i].name, Load: machine.Load()}
			m, err := able[i].run(ctx, &place{bench: b, Stage: st, c: c})
			if ctx.Err() != nil {
				return out, errors.Join(failures...)
			}
			row.Value, row.Loss, row.Workers = m.value, m.loss, m.workers
			if err != nil {
				row.Void = err.Error()
			}
			// A starved machine may leave one short window empty, or make a connection
			// give up; not in all rounds.
			if err != nil && !errors.Is(err, errNothing) && !errors.Is(err, errGaveUp) {
				failures = append(failures, fmt.Errorf("%s: %w", able[i].name, err))
			}
			out.Rows = append(out.Rows, row)
			progress.done(c, &row)
		}
	}
	failures = append(failures, silent(&out)...)
	out.Judge()
	return out, errors.Join(failures...)
}

// silent names the variants of a case that never moved a packet.
func silent(c *result.Case) []error {
	var failures []error
	for _, name := range c.Variants {
		moved := false
		for _, r := range c.Rows {
			moved = moved || r.Variant == name && r.Value > 0
		}
		if !moved {
			failures = append(failures, fmt.Errorf("%s: %w in any round", name, errNothing))
		}
	}
	return failures
}
