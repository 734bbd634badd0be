package tunnel

import (
	"sync"
	"sync/atomic"
	"testing"
)

// TestCountedLast: whoever sees a datagram in the counters sees its packets there.
func TestCountedLast(t *testing.T) {
	const looks, packets = 100_000, 3
	var g group
	var ended atomic.Bool
	var counts sync.WaitGroup
	counts.Go(func() {
		for !ended.Load() {
			g.counts.sent(1, packets)
		}
	})
	defer counts.Wait()
	defer ended.Store(true)
	for range looks {
		s := g.stats()
		if s.TxPackets < packets*s.TxDatagrams || s.TxBytes < s.TxDatagrams {
			t.Fatalf("%+v", s)
		}
	}
}
