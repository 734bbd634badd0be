package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/rateplot"
	"xroce/engine/sim/congestion"
)

// A simCongestion says which scenarios of congestion control to run, and where the picture goes.
type simCongestion struct {
	which    string // a name, "all" or "list"
	svg      string
	from, to uint64 // seeds
}

// simCongestionReport is what `xroce sim --congestion --json` prints.
type simCongestionReport struct {
	Runs   []simCongestionRun `json:"runs"`
	Failed int                `json:"failed"`
}

// A simCongestionRun is a run with its verdict.
type simCongestionRun struct {
	*congestion.Result
	Missed []string `json:"missed"` // bars
	Known  []string `json:"known"`  // those of them that the scenario is known to miss
}

// register adds the flags.
func (f *simCongestion) register(c *cobra.Command) {
	c.Flags().StringVar(&f.which, "congestion", "",
		"put congestion control on trial: a `scenario`, all or list")
	c.Flags().StringVar(&f.svg, "svg", "",
		"draw the rates and the queue of that run to this `file`")
}

// run runs what the flags ask for.
func (f *simCongestion) run(ctx context.Context, a *app) error {
	if f.which == "list" {
		return a.listCongestion()
	}
	scenarios := congestion.Scenarios()
	if f.which != "all" {
		s, ok := congestion.Find(f.which)
		if !ok {
			return usagef("no scenario %q: --congestion list has them", f.which)
		}
		scenarios = []congestion.Scenario{s}
	}
	if f.svg != "" && (len(scenarios) > 1 || f.from != f.to) {
		return usagef("--svg is for one scenario and one seed")
	}
	picture, err := openResult(f.svg)
	if err != nil {
		return err
	}
	defer picture.close()
	var drawn error // the report is told all the same
	report := simCongestionReport{Runs: []simCongestionRun{}}
	for i := range scenarios {
		for seed := f.from; seed <= f.to; seed++ {
			run, err := one(ctx, a, &scenarios[i], seed)
			if err != nil {
				return err
			}
			drawn = picture.fill(func(w io.Writer) error { return rateplot.Write(w, run.Result) })
			if len(run.Missed) > len(run.Known) {
				report.Failed++
			}
			report.Runs = append(report.Runs, run)
		}
	}
	if a.json {
		drawn = errors.Join(drawn, a.printJSON(&report))
	} else {
		a.printf("sim: %d runs, %d failed\n", len(report.Runs), report.Failed)
	}
	if drawn == nil && report.Failed > 0 {
		return exitError{exitFailure, nil}
	}
	return drawn
}

// one runs a scenario from a seed.
func one(
	ctx context.Context, a *app, s *congestion.Scenario, seed uint64,
) (run simCongestionRun, err error) {
	r, err := congestion.Run(ctx, *s, seed)
	if err != nil {
		return run, err
	}
	run = simCongestionRun{Result: r, Missed: []string{}, Known: []string{}}
	unknown := r.Unknown(s)
	for _, name := range r.Missed() {
		run.Missed = append(run.Missed, name)
		if !slices.Contains(unknown, name) {
			run.Known = append(run.Known, name)
		}
	}
	if !a.json {
		a.printCongestion(&run)
	}
	return run, nil
}

// listCongestion lists the scenarios.
func (a *app) listCongestion() error {
	type scenario struct {
		Name  string `json:"scenario"`
		About string `json:"about"`
	}
	list := []scenario{}
	for _, s := range congestion.Scenarios() {
		list = append(list, scenario{s.Name, s.About})
	}
	if a.json {
		return a.printJSON(list)
	}
	for _, s := range list {
		a.printf("%-26s %s\n", s.Name, s.About)
	}
	return nil
}

// printCongestion prints a run, a line for each phase.
func (a *app) printCongestion(r *simCongestionRun) {
	a.printf("%s: %s; seed %d\n", r.Name, r.About, r.Seed)
	a.printf("  %-10s %5s %6s %7s %6s %12s %9s %6s  %s\n", "phase, ms", "flows", "use",
		"goodput", "Jain", "queue max, B", "mean, B", "lost", "missed")
	for i := range r.Phases {
		p := &r.Phases[i]
		m := &p.Steady
		span := fmt.Sprintf("%g..%g", float64(p.From)/1e6, float64(p.To)/1e6)
		a.printf("  %-10s %5d %6.3f %7.3f %6.3f %12d %9.0f %6d  %s\n", span, p.Flows, m.Use,
			m.Goodput, m.Jain, m.QueueMax, m.Queue, m.Lost,
			or(strings.Join(m.Missed(), " "), "none"))
	}
	a.printf("  %d frames, %d marked, %d lost", r.Frames, r.Marked, r.Lost)
	for _, name := range slices.Sorted(maps.Keys(r.Counters)) {
		if strings.HasPrefix(name, "np_") || strings.HasPrefix(name, "rp_") ||
			name == "retransmits" {
			a.printf(", %s %d", name, r.Counters[name])
		}
	}
	a.printf("\n")
	for _, why := range r.Ended {
		a.printf("  ended: %s\n", why)
	}
	if len(r.Known) > 0 {
		a.printf("  known to be missed: %s\n", strings.Join(r.Known, " "))
	}
}
