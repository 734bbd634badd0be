package load

import (
	"testing"

	"pgregory.net/rapid"
)

// However completions come, the rota serves one after the other, never exceeds a
// depth, and no message goes without a completion for ever.
func TestRota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.SampledFrom([]int{1, 2, 7, 100}).Draw(t, "queue pairs")
		r := newRota(n)
		inFlight, sinceSignal := make([]uint32, n), make([]uint32, n)
		var pending []int // completions to come
		for step := range 2000 {
			i, signaled, ok := r.turn()
			if ok {
				if want := int(sum(r.posted)) % n; i != want {
					t.Fatalf("step %d: the turn of %d, want %d", step, i, want)
				}
				r.took()
				inFlight[i]++
				sinceSignal[i]++
				if signaled {
					pending = append(pending, i)
					sinceSignal[i] = 0
				}
				if inFlight[i] > r.depth || sinceSignal[i] >= r.every {
					t.Fatalf("%d in flight, %d without a completion", inFlight[i], sinceSignal[i])
				}
			}
			if !ok && len(pending) == 0 {
				t.Fatalf("step %d: %d waits for a completion that nobody asked for", step, i)
			}
			if len(pending) > 0 && (!ok || rapid.Bool().Draw(t, "complete")) {
				k := rapid.IntRange(0, len(pending)-1).Draw(t, "which")
				i := pending[k]
				pending = append(pending[:k], pending[k+1:]...)
				inFlight[i] -= uint32(r.done(i))
			}
		}
	})
}

func sum(v []uint32) (total uint32) {
	for _, x := range v {
		total += x
	}
	return total
}

func TestRotaDepth(t *testing.T) {
	for n, want := range map[int]uint32{1: sendDepth, 2: manyDepth, 10000: manyDepth} {
		r := newRota(n)
		if r.depth != want || r.depth%r.every != 0 || r.every < 1 {
			t.Errorf("%d queue pairs: depth %d, a completion for %d", n, r.depth, r.every)
		}
	}
}
