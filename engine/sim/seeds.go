package sim

import (
	"context"
	"sync"
	"sync/atomic"
)

// EachSeed calls run for each seed from first to last, both included, on so many goroutines,
// at least 1. It returns when all are done, or, once the context has ended, those that were begun.
func EachSeed(ctx context.Context, first, last uint64, workers int, run func(seed uint64)) {
	var wg sync.WaitGroup
	var next atomic.Uint64 // less first
	for range max(1, workers) {
		wg.Go(func() {
			for ctx.Err() == nil {
				n := next.Add(1) - 1
				if n > last-first {
					return
				}
				run(first + n)
			}
		})
	}
	wg.Wait()
}
