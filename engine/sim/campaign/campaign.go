package campaign

import (
	"context"
	"fmt"
	"io"
	"sync"

	"xroce/engine/sim"
)

// A Campaign is a range of seeds. S is what the trial counts.
type Campaign[S any] struct {
	From, To uint64 // both included
	Workers  int    // seeds at a time, at least 1
	// Twice makes every seed that it divides run twice, to compare the two
	// runs; 0 for none.
	Twice uint64
	// Log gets the configuration and every event of every seed; with it there
	// must be one worker. May be nil.
	Log io.Writer
	// Failed is called for each seed that failed, and Done after each seed with
	// how many are done, one call at a time. Both may be nil.
	Failed func(*Result[S])
	Done   func(seeds uint64)
}

// A Summary is how a campaign ended.
type Summary[S any] struct {
	Seeds  uint64   // that were run
	Failed []uint64 // those that failed, in the order in which they did
	Stats  S
}

// A Trial is what a campaign does with its seeds.
type Trial[S any] struct {
	// Run runs one seed. It is called by several goroutines at once. The log may be nil.
	Run func(ctx context.Context, seed uint64, log io.Writer) *Result[S]
	// Add adds what happened in a run to the sum.
	Add func(sum, run *S)
	// Determinism is what is violated when two runs of a seed differ.
	Determinism Invariant
}

// RunSeeds runs the seeds, each on one worker, until all are done or the context
// ends.
func (c *Campaign[S]) RunSeeds(ctx context.Context, t *Trial[S]) *Summary[S] {
	var mu sync.Mutex
	var sum Summary[S]
	sim.EachSeed(ctx, c.From, c.To, c.Workers, func(seed uint64) {
		r := c.one(ctx, t, seed)
		mu.Lock()
		defer mu.Unlock()
		sum.Seeds++
		t.Add(&sum.Stats, &r.Stats)
		if r.Violation != nil {
			sum.Failed = append(sum.Failed, r.Seed)
			if c.Failed != nil {
				c.Failed(r)
			}
		}
		if c.Done != nil {
			c.Done(sum.Seeds)
		}
	})
	return &sum
}

// one runs a seed, and some seeds twice: then runs that differ are a violation.
func (c *Campaign[S]) one(ctx context.Context, t *Trial[S], seed uint64) *Result[S] {
	r := t.Run(ctx, seed, c.Log)
	if c.Twice == 0 || seed%c.Twice != 0 || r.Violation != nil {
		return r
	}
	if again := t.Run(ctx, seed, nil); again.Hash != r.Hash {
		r.Violation = &Violation{t.Determinism, 0, fmt.Sprintf(
			"two runs differ: event hashes %#x and %#x", r.Hash, again.Hash)}
	}
	return r
}
