package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

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
	if err := showRuns(runs, f); err != nil {
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
func showStored(f flags) error {
	var runs result.Runs
	for name := range strings.SplitSeq(f.from, ",") {
		d, err := result.Load(name)
		if err != nil {
			return err
		}
		runs = append(runs, d)
	}
	if len(runs) == 1 && f.page == "" {
		return show(runs[0], f.json)
	}
	return showRuns(runs, f)
}

// showRuns prints the medians of whole runs on standard output, and writes the page of them.
func showRuns(runs result.Runs, f flags) error {
	var whole []string
	for _, c := range choose(allCases(), "", false) {
		whole = append(whole, c.name)
	}
	if err := runs.Check(whole); err != nil {
		return err
	}
	if f.page != "" {
		if err := writePage(f.page, runs); err != nil {
			return err
		}
	}
	if f.json {
		enc := json.NewEncoder(os.Stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(runs)
	}
	return runs.WriteText(os.Stdout)
}

// pageHead begins the page of medians.
const pageHead = `# Medians of whole runs

Made by the bench (make bench-median), not by hand. [perf.md](perf.md) says how to read it, how
it is measured, and what stops the goals that are missed.

`

// writePage writes the medians of whole runs for docs.
func writePage(name string, runs result.Runs) error {
	var page bytes.Buffer
	page.WriteString(pageHead)
	if err := runs.WriteMarkdown(&page); err != nil {
		return err
	}
	return os.WriteFile(name, []byte(folded(strings.TrimSpace(page.String())+"\n")), 0o644)
}

// pageColumns is how wide text is in our pages.
const pageColumns = 98

// folded breaks lines that are too long, but for those of tables.
func folded(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		for !strings.HasPrefix(line, "|") && utf8.RuneCountInString(line) > pageColumns {
			at := strings.LastIndexByte(line[:pageColumns], ' ')
			if at <= 0 {
				break
			}
			b.WriteString(line[:at] + "\n")
			line = line[at+1:]
		}
		b.WriteString(line)
	}
	return b.String()
}
