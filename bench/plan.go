package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// A plan is what a run is going to measure, and how long that may take.
type plan []planned

// planned is one case of a plan.
type planned struct {
	name            string
	title           string
	variants        int
	rounds, skipped int
	row             time.Duration // a guess at the time of one row
}

// plan looks at what can run here.
func (b *bench) plan(cases []benchCase) plan {
	var p plan
	for i := range cases {
		c := &cases[i]
		able, skips := b.able(c)
		one := planned{
			name: c.name, title: c.title, variants: len(able), rounds: c.rounds(b.pairs),
			skipped: len(skips), row: b.warmup + b.window + idle,
		}
		p = append(p, one)
	}
	return p
}

// rows is how many measurements there are.
func (p plan) rows() int {
	n := 0
	for _, c := range p {
		n += c.variants * c.rounds
	}
	return n
}

// time is how long all of it may take.
func (p plan) time() (total time.Duration) {
	for _, c := range p {
		total += time.Duration(c.variants*c.rounds) * c.row
	}
	return total
}

// each is the mean time of a row.
func (p plan) each() time.Duration {
	if p.rows() == 0 {
		return 0
	}
	return p.time() / time.Duration(p.rows())
}

// print tells people what they are in for.
func (p plan) print(out io.Writer) {
	tw := tabwriter.NewWriter(out, 0, 8, 2, ' ', 0)
	for _, c := range p {
		note := ""
		if c.skipped > 0 {
			note = fmt.Sprintf(", %d skipped", c.skipped)
		}
		fmt.Fprintf(tw, "%s\t%s\t%d variants × %d rounds%s\n", c.name, c.title, c.variants,
			c.rounds, note)
	}
	// Standard error: who cannot read it loses nothing else.
	_ = tw.Flush()
	fmt.Fprintf(out, "%d rows, about %v\n", p.rows(), p.time().Round(time.Second))
}
