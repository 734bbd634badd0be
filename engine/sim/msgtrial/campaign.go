package msgtrial

import (
	"context"
	"fmt"
	"io"
	"sync"

	"xroce/engine/sim"
)

// A Campaign is a range of seeds.
type Campaign struct {
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
	Failed func(*Result)
	Done   func(seeds uint64)
}

// A Summary is how a campaign ended.
type Summary struct {
	Seeds  uint64   // that were run
	Failed []uint64 // those that failed, in the order in which they did
	Stats  Stats
}

// Run runs the seeds, each on one worker, until all are done or the context
// ends.
func (c *Campaign) Run(ctx context.Context) *Summary {
	var mu sync.Mutex
	var sum Summary
	sim.EachSeed(ctx, c.From, c.To, c.Workers, func(seed uint64) {
		r := c.one(ctx, seed)
		mu.Lock()
		defer mu.Unlock()
		sum.Seeds++
		sum.Stats.Add(&r.Stats)
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

// one runs a seed, and some seeds twice.
func (c *Campaign) one(ctx context.Context, seed uint64) *Result {
	r := Run(ctx, seed, Options{Log: c.Log})
	if c.Twice == 0 || seed%c.Twice != 0 || r.Violation != nil {
		return r
	}
	again := Run(ctx, seed, Options{})
	compareRuns(r, again)
	return r
}

// compareRuns makes two runs of a seed that differ a violation of the first.
func compareRuns(r, again *Result) {
	if r.Hash != again.Hash {
		r.Violation = &Violation{Determinism, r.Stats.Virtual, fmt.Sprintf(
			"two runs differ: event hashes %#x and %#x", r.Hash, again.Hash)}
	}
}
