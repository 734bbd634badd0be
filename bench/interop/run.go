package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/interop/internal/play"
	"xroce/bench/interop/internal/report"
	"xroce/bench/softroce"
)

// A runner runs cases, and tells what comes of them.
type runner struct {
	flags    flags
	player   play.Player
	out      io.Writer
	cases    int // of the run
	outcomes []cases.Outcome
	images   []string // the kernels of the VMs
}

// tell notes and prints an outcome.
func (r *runner) tell(o cases.Outcome) {
	r.outcomes = append(r.outcomes, o)
	fmt.Fprintf(r.out, "[%d/%d] %s\n", len(r.outcomes), r.cases, o.Line())
}

// again prints an outcome of a try that is not the last.
func (r *runner) again(o cases.Outcome) { fmt.Fprintf(r.out, "tried again: %s\n", o.Line()) }

// runCases runs the cases, prints what came of each, and the verdict at last.
func runCases(ctx context.Context, chosen []cases.Case, f flags) (int, error) {
	start := time.Now()
	r := &runner{flags: f, out: os.Stdout, cases: len(chosen)}
	if f.json {
		r.out = os.Stderr
	}
	r.player = play.Player{Again: r.again, Reboots: f.reboots}
	for left := chosen; len(left) > 0; {
		config := lab.ConfigOf(left[0], f.xroce)
		n := slices.IndexFunc(left, func(c cases.Case) bool {
			return lab.ConfigOf(c, f.xroce) != config
		})
		if n < 0 {
			n = len(left)
		}
		if err := r.inLab(ctx, config, left[:n]); err != nil {
			return exitFailed, err
		}
		left = left[n:]
	}
	if f.updateDocs {
		if err := report.Update(r.outcomes); err != nil {
			return exitFailed, err
		}
	}
	if f.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(r.outcomes); err != nil {
			return exitFailed, err
		}
	}
	return r.verdict(time.Since(start)), nil
}

// inLab runs the cases that need one lab. An error is no verdict about a case: there is no
// going on.
func (r *runner) inLab(ctx context.Context, config lab.Config, list []cases.Case) (err error) {
	if config.Card != "" {
		if has, err := softroce.HasCard(ctx, config.Card); err != nil {
			return err
		} else if !has {
			for _, c := range list {
				r.tell(cases.Outcome{
					Case: c, Verdict: cases.Skipped, Reason: "this QEMU has no " + config.Card,
				})
			}
			return nil
		}
	}
	l, err := lab.Open(ctx, config)
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, keep(l, r.flags, r.outcomes), l.Close())
	}()
	r.images = append(r.images, l.Images()...)
	var traces []cases.Case
	for _, c := range list {
		if c.Trace {
			traces = append(traces, c)
			continue
		}
		o, err := r.player.Play(ctx, l, c)
		r.tell(o)
		if err != nil {
			return err
		}
	}
	if err := r.player.Trace(ctx, l, traces, r.tell); err != nil {
		return err
	}
	judged := l.Capture.Judge(ctx)
	judged.Case.Card, judged.Case.Self = config.Card, config.Self
	fmt.Fprintln(r.out, judged.Line())
	r.outcomes = append(r.outcomes, judged)
	r.cases++
	return nil
}

// verdict prints what came of all cases, and returns the exit status.
func (r *runner) verdict(took time.Duration) int {
	t := cases.Count(r.outcomes)
	for _, o := range r.outcomes {
		switch {
		case o.Verdict == cases.Failed:
			fmt.Fprintln(r.out, "failed:", o.Case.Name())
		case o.Tries > 1:
			fmt.Fprintf(r.out, "passed at try %d: %s\n", o.Tries, o.Case.Name())
		}
		if o.Panicked > 0 {
			fmt.Fprintf(r.out, "a kernel panicked, and its VM was booted anew, %d times: %s\n",
				o.Panicked, o.Case.Name())
		}
	}
	slices.Sort(r.images)
	fmt.Fprintf(r.out, "interop: %.0f s, %s\n", took.Seconds(),
		strings.Join(slices.Compact(r.images), ", "))
	compared, bytes := cases.Comparisons(r.outcomes)
	fmt.Fprintf(r.out, "interop: %d bytes compared in %d cases of perftest\n", bytes, compared)
	fmt.Fprintf(r.out, "interop: %d passed, %d failed, %d skipped\n", t[cases.Passed],
		t[cases.Failed], t[cases.Skipped])
	if t[cases.Failed] > 0 {
		return exitFailed
	}
	return exitOK
}

// keep keeps what --keep asks for, also of a run that ends early.
func keep(l *lab.Lab, f flags, outcomes []cases.Outcome) error {
	if f.keep == "" {
		return nil
	}
	return l.Keep(f.keep, outcomes)
}
