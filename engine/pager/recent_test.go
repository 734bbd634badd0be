package pager

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestRecentNeverMixes: two workers of a device look at blocks that share a place, at one
// time. What one of them saw of its block is not taken for the other's.
func TestRecentNeverMixes(t *testing.T) {
	const rounds, now = 3_000_000, 7
	var c recent
	// The first page of one block is present, and the second of the other.
	blocks := [2]uint64{0, uint64(len(c))}
	var all sync.WaitGroup
	var over atomic.Bool
	for i, block := range blocks {
		all.Go(func() {
			for range rounds {
				c.learn(now, block, 1<<i)
			}
			over.Store(true)
		})
	}
	known := 0
	for !over.Load() {
		for i, block := range blocks {
			at := block * vector * pageSize
			if c.has(now, at+uint64(i)*pageSize, 1) {
				known++
			}
			if c.has(now, at+uint64(1-i)*pageSize, 1) {
				t.Fatalf("page %d of block %d is taken for present", 1-i, block)
			}
		}
	}
	all.Wait()
	c.learn(now, 0, 1)
	if !c.has(now, 0, 1) || c.has(now+trust, 0, 1) || c.has(now, pageSize, 1) {
		t.Errorf("the last look is not what is remembered, after %d hits", known)
	}
}
