package main

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"xroce/engine/sim/msgtrial"
	"xroce/engine/sim/trial"
)

func (a *app) simCommand() *cobra.Command {
	var seeds string
	var workers int
	var messages bool
	var congestion simCongestion
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

With --congestion it is congestion control: DCQCN, Swift or none on hosts that send to one
receiver through a switch that marks and loses frames. It tells how well the bottleneck
is used, how fairly it is shared, how long the queue is and what is lost, against the
bars that docs/congestion.md explains; a bar that is missed and not known to be fails the
run. Without --seeds it is seed 1.

A seed that fails is printed with its configuration, the invariant that did not
hold, the last events, and the command that runs it again. With --verbose every
event of every seed is printed: for a single seed.`,
		Example: "  xroce sim --seeds 1..1000\n  xroce sim --seeds 17 --verbose\n" +
			"  xroce sim --messages --seeds 1..20000\n  xroce sim --congestion list\n" +
			"  xroce sim --congestion incast-8-dcqcn --svg rates.svg",
		Args: cobra.NoArgs,
	}
	c.Flags().StringVar(&seeds, "seeds", "1..1000", "seeds to run: A..B or one")
	c.Flags().BoolVar(&messages, "messages", false, "put messages on trial")
	c.Flags().IntVar(&workers, "workers", runtime.GOMAXPROCS(0), "seeds to run at a time")
	congestion.register(c)
	return a.command(c, func(ctx context.Context, _ []string) error {
		from, to, err := parseSeeds(seeds)
		if err != nil {
			return usageError{err}
		}
		if workers < 1 {
			return usagef("%d workers are too few", workers)
		}
		switch {
		case congestion.which != "" && messages:
			return usagef("--congestion and --messages are two trials")
		case congestion.which != "":
			congestion.from, congestion.to = from, to
			if !c.Flags().Changed("seeds") {
				congestion.from, congestion.to = 1, 1
			}
			return congestion.run(ctx, a)
		case congestion.svg != "":
			return usagef("--svg is for --congestion")
		}
		if messages {
			return a.simMessages(ctx, &msgtrial.Campaign{
				From: from, To: to, Workers: workers, Twice: 32,
			})
		}
		return a.simEngine(ctx, &trial.Campaign{From: from, To: to, Workers: workers, Twice: 32})
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
