package rdmacm

import (
	"math"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// A RoundTrip is how long the rounds of a client took: two messages each way, a READ and
// a WRITE. Stddev is the standard deviation of all of them. A part of the rounds, half for P50,
// took at most so long; those are right within a thousandth.
type RoundTrip struct {
	Min, Mean, Max, Stddev time.Duration
	P50, P90, P99, P999    time.Duration
}

// roundTrips adds up the rounds of a client. Its memory does not grow with them.
type roundTrips struct {
	min, max time.Duration
	mean     float64 // of nanoseconds
	squares  float64 // the sum of squares of their differences from the mean
	all      *hdrhistogram.Histogram
}

// A round that took longer than longestRound counts as one of that in the percentiles. None
// does: a client hangs up sooner.
const longestRound = time.Hour

func newRoundTrips() *roundTrips {
	return &roundTrips{all: hdrhistogram.New(1, int64(longestRound), 3)}
}

// add takes a round. Mean and deviation are kept as Welford does, Technometrics 4 (1962), since
// the difference of two large sums would lose the digits that matter.
func (t *roundTrips) add(d time.Duration) {
	if t.all.TotalCount() == 0 || d < t.min {
		t.min = d
	}
	t.max = max(t.max, d)
	_ = t.all.RecordValue(int64(min(d, longestRound))) // it is in the range
	before := float64(d) - t.mean
	t.mean += before / float64(t.all.TotalCount())
	t.squares += before * (float64(d) - t.mean)
}

// result is what the rounds came to, nil when there was none.
func (t *roundTrips) result() *RoundTrip {
	n := t.all.TotalCount()
	if n == 0 {
		return nil
	}
	// A bucket's largest value may be above the largest there was.
	part := func(q float64) time.Duration {
		return min(time.Duration(t.all.ValueAtQuantile(q)), t.max)
	}
	return &RoundTrip{
		Min: t.min, Mean: time.Duration(math.Round(t.mean)), Max: t.max,
		Stddev: time.Duration(math.Round(math.Sqrt(t.squares / float64(n)))),
		P50:    part(50), P90: part(90), P99: part(99), P999: part(99.9),
	}
}
