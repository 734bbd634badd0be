package sim

import (
	"context"
	"sync"
	"testing"
)

// TestEachSeed runs each seed once, and none after the context has ended.
func TestEachSeed(t *testing.T) {
	for _, workers := range []int{0, 1, 3, 20} {
		var mu sync.Mutex
		seen := map[uint64]int{}
		EachSeed(t.Context(), 5, 14, workers, func(seed uint64) {
			mu.Lock()
			defer mu.Unlock()
			seen[seed]++
		})
		for seed := uint64(5); seed <= 14; seed++ {
			if seen[seed] != 1 || len(seen) != 10 {
				t.Fatalf("%d workers: %v", workers, seen)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	EachSeed(ctx, 1, 100, 1, func(uint64) {
		if n++; n == 3 {
			cancel()
		}
	})
	if n != 3 {
		t.Errorf("%d seeds were run", n)
	}
}
