package perf

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestLatency checks the numbers against those of the tool for the same samples:
// 20 messages are 19 samples, of which 17 count.
func TestLatency(t *testing.T) {
	posted := []int64{0}
	for i := range 19 {
		// 1 to 17 us in some order, then two outliers.
		us := int64(i*7%17 + 1)
		if i >= 17 {
			us = int64(i) * 100
		}
		posted = append(posted, posted[i]+us*1000)
	}
	got := latency(posted, 1, SamplesNone)
	want := Latency{
		Min: 1, Max: 1700, Typical: 9, Average: 9, Stdev: math.Sqrt(24), P99: 1700, P999: 1700,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	half := latency(posted, 2, SamplesUnsorted)
	if half.Typical != 4.5 || len(half.Samples) != 19 || half.Samples[1] != 4 {
		t.Errorf("half a round trip: %+v", half)
	}
	if sorted := latency(posted, 1, SamplesSorted).Samples; len(sorted) != 17 ||
		!slices.IsSorted(sorted) {
		t.Errorf("sorted samples: %v", sorted)
	}
}

func TestLatencyOfAnEvenNumber(t *testing.T) {
	// 6 samples, of which 4 count: 1, 2, 3 and 4 us.
	got := latency([]int64{0, 4000, 5000, 8000, 10000, 19000, 29000}, 1, SamplesNone)
	if got.Typical != 2.5 || got.Max != 9 || got.Min != 1 || got.P99 != 9 {
		t.Errorf("%+v", got)
	}
}

func TestFewestSamples(t *testing.T) {
	posted := []int64{0, 1000, 2000, 3000, 4000} // -n 5
	if got := latency(posted, 1, SamplesNone); got.Average != 1 || got.Max != 1 || got.Stdev != 0 {
		t.Errorf("%+v", got)
	}
}

// slowFastest tries each pair, as the tool does.
func slowFastest(posted, completed []int64) float64 {
	best := math.Inf(1)
	for i := range posted {
		for j := i; j < len(posted); j++ {
			if completed[j] != 0 {
				best = min(best, float64(completed[j]-posted[i])/float64(j-i+1))
			}
		}
	}
	return best
}

func TestFastestIsThatOfThePairs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 30).Draw(t, "n")
		stride := rapid.IntRange(1, 5).Draw(t, "stride")
		posted, completed := make([]int64, n), make([]int64, n)
		now := int64(0)
		for i := range n {
			now += rapid.Int64Range(0, 1000).Draw(t, "gap")
			posted[i] = now
		}
		for j := range n {
			if (j+1)%stride == 0 || j == n-1 {
				now = max(now, posted[j]) + rapid.Int64Range(1, 1000).Draw(t, "latency")
				completed[j] = now
			}
		}
		got, want := fastest(posted, completed), slowFastest(posted, completed)
		if math.Abs(got-want) > want/1e6 {
			t.Errorf("%v, not %v: %v %v", got, want, posted, completed)
		}
	})
	if got := fastest(nil, nil); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}
