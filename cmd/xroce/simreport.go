package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
)

// simTotals are what both trials report: of the engine, and of messages.
type simTotals struct {
	Seeds       uint64            `json:"seeds"`
	Failed      []simFailure      `json:"failed"`
	Connections uint64            `json:"connections"`
	Messages    uint64            `json:"messages"`
	Bytes       uint64            `json:"bytes"`
	Packets     uint64            `json:"packets"`
	Faults      map[string]uint64 `json:"faults"`
	Chaos       map[string]uint64 `json:"chaos"`
	Virtual     float64           `json:"virtual_seconds"`
	Seconds     float64           `json:"seconds"`
}

// simFailure is a seed that failed.
type simFailure struct {
	Seed      uint64   `json:"seed"`
	Invariant string   `json:"invariant"`
	What      string   `json:"what"`
	Config    string   `json:"config"`
	Last      []string `json:"last_events"`
	Replay    string   `json:"replay"`
}

// maxShown is how many failures are printed in full.
const maxShown = 3

// runSim runs a campaign, says which seeds failed and returns how it ended.
func runSim[S any](ctx context.Context, a *app, c *campaign.Campaign[S],
	run func(context.Context, *campaign.Campaign[S]) *campaign.Summary[S],
) (simTotals, *S, error) {
	t := simTotals{Failed: []simFailure{}}
	total := c.To - c.From + 1
	line := a.progress("sim", true)
	c.Done = func(done uint64) { line.Update(int64(done), int64(total)) }
	c.Failed = func(r *campaign.Result[S]) {
		line.Close()
		t.Failed = append(t.Failed, simFailure{
			Seed: r.Seed, Invariant: string(r.Violation.Invariant), What: r.Violation.What,
			Config: r.Config, Last: r.Last, Replay: r.Replay,
		})
		if !a.json && len(t.Failed) <= maxShown {
			a.printf("%s\n", r)
		}
	}
	if a.verbose > 0 && !a.json {
		c.Workers, c.Log = 1, a.stdout
	}
	start := a.now()
	sum := run(ctx, c)
	line.Close()
	t.Seeds, t.Seconds = sum.Seeds, a.now().Sub(start).Seconds()
	if ctx.Err() != nil && sum.Seeds < total {
		return t, nil, ctx.Err()
	}
	return t, &sum.Stats, nil
}

// count takes what every trial counts of its network.
func (t *simTotals) count(network *[sim.NumKinds]uint64, virtual roce.Time) {
	t.Packets, t.Virtual = network[sim.Sent], float64(virtual)/1e9
	faults := *network
	for k := range sim.NumKinds {
		if !k.Fault() {
			faults[k] = 0
		}
	}
	t.Faults = countsByName[sim.Kind](faults[:])
}

// reportSim prints a report, as JSON or as text whose last line is the verdict, and returns
// the exit code of that.
func (a *app) reportSim(t *simTotals, report any, text func()) error {
	if a.json {
		if err := a.printJSON(report); err != nil {
			return err
		}
	} else {
		text()
		a.printf("virtual time   %.1f s\n", t.Virtual)
		a.printf("time           %.1f s, %.0f seeds/s\n", t.Seconds,
			float64(t.Seeds)/max(t.Seconds, 1e-9))
		a.printf("%s", hiddenFailures(t.Failed))
		a.printf("sim: %d seeds, %d failed\n", t.Seeds, len(t.Failed))
	}
	if len(t.Failed) > 0 {
		return exitError{exitFailure, nil}
	}
	return nil
}

// hiddenFailures lists the seeds that failed and were not printed.
func hiddenFailures(failed []simFailure) string {
	if len(failed) <= maxShown {
		return ""
	}
	line := "not shown      seeds"
	for _, f := range failed[maxShown:] {
		line += fmt.Sprintf(" %d", f.Seed)
	}
	return line + "\n"
}

// countsByName names counts, those that are not 0.
func countsByName[T interface {
	~uint8
	String() string
}](counts []uint64) map[string]uint64 {
	named := map[string]uint64{}
	for i, n := range counts {
		if n > 0 {
			named[T(i).String()] = n
		}
	}
	return named
}

// sortedCounts prints counts by name.
func sortedCounts(counts map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return or(strings.Join(list, ", "), "none")
}
