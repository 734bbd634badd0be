package perf

import (
	"math"
	"slices"
)

// A Latency is the result of a latency test, in microseconds.
type Latency struct {
	Min, Max, Typical, Average, Stdev, P99, P999 float64

	// Samples are all of them, if the report is to have them.
	Samples []float64
}

// tail is how many of the largest samples are outliers.
const tail = 2

// MinSamples is how few samples have a result.
const MinSamples = tail + 1

// latency makes the result of when messages were posted. A sample is the time from
// one to the next, divided by the ways of a round trip.
func latency(posted []int64, ways int, keep Samples) Latency {
	samples := make([]float64, len(posted)-1)
	for i := range samples {
		samples[i] = float64(posted[i+1]-posted[i]) / 1000 / float64(ways)
	}
	return Summarize(samples, keep)
}

// Summarize makes the result of samples in microseconds, MinSamples at least, which it sorts.
//
// The largest two samples do not count, the typical one is the median, and the
// percentiles are samples, not interpolated: the tool's print_report_lat.
func Summarize(samples []float64, keep Samples) Latency {
	var l Latency
	if keep == SamplesUnsorted {
		l.Samples = slices.Clone(samples)
	}
	slices.Sort(samples)
	n := len(samples) - tail
	if keep == SamplesSorted {
		l.Samples = samples[:n]
	}
	var sum, squares float64
	for _, s := range samples[:n] {
		sum += s
	}
	l.Average = sum / float64(n)
	for _, s := range samples[:n] {
		squares += (s - l.Average) * (s - l.Average)
	}
	l.Stdev = math.Sqrt(squares / float64(n))
	l.Min, l.Max = samples[0], samples[n]
	l.Typical = samples[n/2]
	if n%2 == 0 {
		l.Typical = (samples[n/2] + samples[n/2-1]) / 2
	}
	at := func(share float64) float64 { return samples[int(math.Ceil(float64(n)*share))] }
	l.P99, l.P999 = at(0.99), at(0.999)
	return l
}

// fastest is the shortest time of a message in any run of messages: of the times
// from the post of one to the completion of a later one, divided by the messages
// from one to the other, the smallest. Where completed is 0 nothing completed.
//
// A time t is too short if no completion j is within (j-i+1)*t of a post i. Taking
// i*t from the posts and (j+1)*t from the completions, that is one look for the
// largest post so far, so bisection finds the answer in linear time.
func fastest(posted, completed []int64) float64 {
	if len(posted) == 0 {
		return 0
	}
	reached := func(t float64) bool {
		latest := math.Inf(-1)
		for i := range posted {
			latest = max(latest, float64(posted[i])-float64(i)*t)
			if completed[i] != 0 && float64(completed[i])-float64(i+1)*t <= latest {
				return true
			}
		}
		return false
	}
	low, high := 0.0, float64(slices.Max(completed)-posted[0])
	for range 64 {
		if middle := (low + high) / 2; reached(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return high
}
