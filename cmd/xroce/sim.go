package main

import (
	"context"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/progress"
	"xroce/engine/sim"
	"xroce/engine/sim/msgtrial"
	"xroce/engine/sim/trial"
	"xroce/roce"
)

// simReport is what `xroce sim --json` prints.
type simReport struct {
	Seeds       uint64            `json:"seeds"`
	Failed      []simFailure      `json:"failed"`
	Connections uint64            `json:"connections"`
	Messages    uint64            `json:"messages"`
	Bytes       uint64            `json:"bytes"`
	Packets     uint64            `json:"packets"`
	Retransmits uint64            `json:"retransmits"`
	Faults      map[string]uint64 `json:"faults"`
	Chaos       map[string]uint64 `json:"chaos"`
	Errors      map[string]uint64 `json:"completion_errors"`
	Operations  map[string]uint64 `json:"operations"`
	Events      map[string]uint64 `json:"events"`
	LostUC      uint64            `json:"uc_messages_lost"`
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

func (a *app) simCommand() *cobra.Command {
	var seeds string
	var workers int
	var messages bool
	c := &cobra.Command{
		Use:   "sim",
		Short: "Put the engine on trial in a simulated network, one run a seed",
		Long: `Run the production engine under virtual time: several devices and connections over
a network that loses, repeats, reorders, damages and delays frames, with
partitions, restarts and slow applications; then quiet, in which everything must
finish. A seed decides all of it. An independent model checks every completion
and every byte. Needs no privileges and no hardware.

With --messages it is the messages that are on trial, on 2 to 8 nodes: all protocols
and modes, receives from any peer with tags and masks, cancels, closes, memory that
comes late or is refused. The model says which receive has which message.

A seed that fails is printed with its configuration, the invariant that did not
hold, the last events, and the command that runs it again. With --verbose every
event of every seed is printed: for a single seed.`,
		Example: "  xroce sim --seeds 1..1000\n  xroce sim --seeds 17 --verbose\n" +
			"  xroce sim --messages --seeds 1..20000",
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&seeds, "seeds", "1..1000", "seeds to run: A..B or one")
	c.Flags().BoolVar(&messages, "messages", false, "put messages on trial")
	c.Flags().IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "seeds to run at a time")
	return a.command(c, func(ctx context.Context, _ []string) error {
		from, to, err := parseSeeds(seeds)
		if err != nil {
			return usageError{err}
		}
		if workers < 1 {
			return usagef("%d workers are too few", workers)
		}
		if messages {
			return a.simMessages(ctx, &msgtrial.Campaign{
				From: from, To: to, Workers: workers, Twice: 32,
			})
		}
		return a.sim(ctx, &trial.Campaign{From: from, To: to, Workers: workers, Twice: 32})
	})
}

// parseSeeds reads a range of seeds.
func parseSeeds(s string) (from, to uint64, err error) {
	first, last, isRange := strings.Cut(s, "..")
	if !isRange {
		last = first
	}
	from, err = strconv.ParseUint(first, 10, 62)
	if err == nil {
		to, err = strconv.ParseUint(last, 10, 62)
	}
	if err != nil || to < from {
		return 0, 0, fmt.Errorf("seeds %q are no range A..B of numbers", s)
	}
	return from, to, nil
}

// sim runs a campaign and reports.
func (a *app) sim(ctx context.Context, c *trial.Campaign) error {
	report := &simReport{Failed: []simFailure{}}
	total := int64(c.To - c.From + 1)
	line := a.progress("sim", true)
	c.Done = func(done uint64) { line.Update(int64(done), total) }
	c.Failed = func(r *trial.Result) {
		line.Close()
		report.fail(r)
		if !a.json && len(report.Failed) <= maxShown {
			a.printf("%s\n", r)
		}
	}
	if a.verbose > 0 && !a.json {
		c.Workers, c.Log = 1, a.stdout
	}
	start := a.now()
	sum := c.Run(ctx)
	line.Close()
	report.total(sum, a.now().Sub(start))
	switch {
	case ctx.Err() != nil && sum.Seeds < uint64(total):
		return ctx.Err()
	case a.json:
		if err := a.printJSON(report); err != nil {
			return err
		}
	default:
		a.printSim(report)
	}
	return report.verdict()
}

// verdict is the exit code of a report that was printed.
func (r *simReport) verdict() error {
	if len(r.Failed) > 0 {
		return exitError{exitFailure, nil}
	}
	return nil
}

// fail takes a seed that failed.
func (r *simReport) fail(result *trial.Result) {
	v := result.Violation
	r.Failed = append(r.Failed, simFailure{
		Seed: result.Seed, Invariant: v.Invariant.String(), What: v.What, Config: result.Config,
		Last: result.Last, Replay: fmt.Sprintf("xroce sim --seeds %d --verbose", result.Seed),
	})
}

// total takes what happened in all seeds.
func (r *simReport) total(sum *trial.Summary, elapsed time.Duration) {
	s := &sum.Stats
	r.Seeds, r.Connections, r.Messages, r.Bytes = sum.Seeds, s.Connections, s.Messages, s.Bytes
	r.Packets, r.Retransmits = s.Network[sim.Sent], s.Retransmits
	r.Faults, r.Chaos, r.Errors = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
	for k := range sim.NumKinds {
		if n := s.Network[k]; k.Fault() && n > 0 {
			r.Faults[k.String()] = n
		}
	}
	for h, n := range s.Chaos {
		if n > 0 {
			r.Chaos[trial.Havoc(h).String()] = n
		}
	}
	r.Operations, r.Events, r.LostUC = map[string]uint64{}, map[string]uint64{}, s.Lost
	for row, n := range s.Ops {
		if n > 0 {
			r.Operations[trial.OpName(row)] = n
		}
	}
	for event, n := range s.Events {
		if n > 0 {
			r.Events[roce.Event(event).String()] = n
		}
	}
	for status, n := range s.Errors {
		if n > 0 {
			r.Errors[roce.Status(status).String()] = n
		}
	}
	r.Virtual, r.Seconds = float64(s.Virtual)/1e9, elapsed.Seconds()
}

// printSim prints the totals; the last line is the verdict.
func (a *app) printSim(r *simReport) {
	a.printf("connections    %d\n", r.Connections)
	a.printf("messages       %d, %s\n", r.Messages, progress.Bytes(int64(r.Bytes)))
	a.printf("operations     %s\n", sortedCounts(r.Operations))
	a.printf("lost by UC     %d messages\n", r.LostUC)
	a.printf("packets        %d, %d of them repeated by the transport\n", r.Packets, r.Retransmits)
	a.printf("faults         %s\n", sortedCounts(r.Faults))
	a.printf("chaos          %s\n", sortedCounts(r.Chaos))
	a.printf("errors         %s\n", sortedCounts(r.Errors))
	a.printf("events         %s\n", sortedCounts(r.Events))
	a.printf("virtual time   %.1f s\n", r.Virtual)
	a.printf("time           %.1f s, %.0f seeds/s\n", r.Seconds,
		float64(r.Seeds)/max(r.Seconds, 1e-9))
	a.printf("%s", hiddenFailures(r.Failed))
	a.printf("sim: %d seeds, %d failed\n", r.Seeds, len(r.Failed))
}

// sortedCounts prints counts by name.
func sortedCounts(counts map[string]uint64) string {
	var list []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		list = append(list, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return or(strings.Join(list, ", "), "none")
}
