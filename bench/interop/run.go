package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
	"xroce/bench/interop/internal/play"
	"xroce/bench/interop/internal/report"
)

// runCases runs the cases, prints what came of each, and the verdict at last.
func runCases(ctx context.Context, l *lab.Lab, chosen []cases.Case, f flags) (int, error) {
	start := time.Now()
	out := os.Stdout
	if f.json {
		out = os.Stderr
	}
	var outcomes []cases.Outcome
	tell := func(o cases.Outcome) {
		outcomes = append(outcomes, o)
		fmt.Fprintf(out, "[%d/%d] %s\n", len(outcomes), len(chosen), o.Line())
	}
	again := func(o cases.Outcome) { fmt.Fprintf(out, "tried again: %s\n", o.Line()) }
	var traces []cases.Case
	for _, c := range chosen {
		if c.Trace {
			traces = append(traces, c)
			continue
		}
		o, err := play.Play(ctx, l, c, again)
		tell(o)
		if err != nil {
			return exitFailed, errors.Join(err, keep(l, f, outcomes))
		}
	}
	if err := play.Trace(ctx, l, traces, tell, again); err != nil {
		return exitFailed, errors.Join(err, keep(l, f, outcomes))
	}
	judged := l.Capture.Judge(ctx)
	fmt.Fprintln(out, judged.Line())
	outcomes = append(outcomes, judged)
	if err := keep(l, f, outcomes); err != nil {
		return exitFailed, err
	}
	if f.updateDocs {
		if err := report.Update(outcomes); err != nil {
			return exitFailed, err
		}
	}
	t := cases.Count(outcomes)
	if f.json {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "  ")
		if err := e.Encode(outcomes); err != nil {
			return exitFailed, err
		}
	}
	for _, o := range outcomes {
		switch {
		case o.Verdict == cases.Failed:
			fmt.Fprintln(out, "failed:", o.Case.Name())
		case o.Tries > 1:
			fmt.Fprintf(out, "passed at try %d: %s\n", o.Tries, o.Case.Name())
		}
	}
	fmt.Fprintf(out, "interop: %.0f s, %s\n", time.Since(start).Seconds(), l.Image.Name)
	compared, bytes := cases.Comparisons(outcomes)
	fmt.Fprintf(out, "interop: %d bytes compared in %d cases of perftest\n", bytes, compared)
	fmt.Fprintf(out, "interop: %d passed, %d failed, %d skipped\n", t[cases.Passed],
		t[cases.Failed], t[cases.Skipped])
	if t[cases.Failed] > 0 {
		return exitFailed, nil
	}
	return exitOK, nil
}

// keep keeps what --keep asks for, also of a run that ends early.
func keep(l *lab.Lab, f flags, outcomes []cases.Outcome) error {
	if f.keep == "" {
		return nil
	}
	return l.Keep(f.keep, outcomes)
}
