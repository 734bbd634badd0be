package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"xroce/bench/machine"
	"xroce/bench/result"
)

// Several whole runs, whose medians are what is published.

// errRuns is what is wrong with flags that ask for too few runs, or for less than whole ones.
var errRuns = fmt.Errorf("--runs are %d whole ones at least: without --only and --quick",
	result.RunsWanted)

// measureRuns makes f.runs runs, each f.every after the one before or as soon as that has ended,
// and prints their medians. Each is stored for itself; one that fails ends it.
func measureRuns(ctx context.Context, f flags, cases []benchCase) (int, error) {
	var runs result.Runs
	for i := range f.runs {
		began := time.Now()
		fmt.Fprintf(os.Stderr, "run %d of %d\n", i+1, f.runs)
		d, status, err := measureOnce(ctx, f, cases)
		if err != nil || status != exitOK {
			return status, err
		}
		runs = append(runs, d)
		if i+1 == f.runs {
			break
		}
		select {
		case <-time.After(time.Until(began.Add(f.every))):
		case <-ctx.Done():
			return exitFailed, errors.New("interrupted")
		}
	}
	if err := showRuns(runs, f.json); err != nil {
		return exitFailed, err
	}
	return exitOK, nil
}

// measureOnce makes one run, stores it and shows it.
func measureOnce(ctx context.Context, f flags, cases []benchCase) (*result.Document, int, error) {
	b, err := newBench(ctx, f)
	if err != nil {
		return nil, exitFailed, err
	}
	defer b.close()
	d := result.New(time.Now(), machine.Look(ctx, "."), machine.Load())
	d.Quick, d.Pairs, d.Window = f.quick, f.pairs, f.duration.Seconds()
	failures := append(b.measure(ctx, d, cases), b.profile(ctx, d, cases)...)
	status, err := finish(d, f, failures)
	return d, status, err
}

// showStored prints the tables of a stored run, or the medians of several.
func showStored(names string, asJSON bool) error {
	var runs result.Runs
	for name := range strings.SplitSeq(names, ",") {
		d, err := result.Load(name)
		if err != nil {
			return err
		}
		runs = append(runs, d)
	}
	if len(runs) == 1 {
		return show(runs[0], asJSON)
	}
	return showRuns(runs, asJSON)
}

// showRuns prints the medians of whole runs on standard output.
func showRuns(runs result.Runs, asJSON bool) error {
	var whole []string
	for _, c := range choose(allCases(), "", false) {
		whole = append(whole, c.name)
	}
	if err := runs.Check(whole); err != nil {
		return err
	}
	if asJSON {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(runs)
	}
	if err := runs.WriteText(os.Stdout); err != nil {
		return err
	}
	fmt.Println()
	return runs.WriteMarkdown(os.Stdout)
}
