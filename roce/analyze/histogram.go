package analyze

import (
	"math/bits"

	"xroce/roce/clock"
)

// A Histogram counts durations in buckets that are a quarter of a power of two wide, so that a
// quantile is right within a fifth.
type Histogram struct {
	Count    int
	Min, Max clock.Time
	Sum      clock.Time
	buckets  [64 * histogramParts]uint32
}

const histogramParts = 4

// Add counts a duration. What is negative, because clocks of a capture go backwards, counts as 0.
func (h *Histogram) Add(d clock.Time) {
	d = max(d, 0)
	if h.Count == 0 || d < h.Min {
		h.Min = d
	}
	h.Max = max(h.Max, d)
	h.Sum += d
	h.Count++
	h.buckets[bucketOf(d)]++
}

// bucketOf is the bucket of a duration.
func bucketOf(d clock.Time) int {
	n := bits.Len64(uint64(d))
	if n < 3 {
		return int(d)
	}
	return n*histogramParts + int(d>>(n-3)&(histogramParts-1))
}

// bucketEnd is the largest duration of a bucket.
func bucketEnd(i int) clock.Time {
	if i < histogramParts {
		return clock.Time(i)
	}
	n, part := i/histogramParts, i%histogramParts
	return clock.Time((uint64(histogramParts+part+1) << (n - 3)) - 1)
}

// Mean is the mean duration.
func (h *Histogram) Mean() clock.Time {
	if h.Count == 0 {
		return 0
	}
	return h.Sum / clock.Time(h.Count)
}

// Quantile is a duration that is not less than the given part of all, 0.99 for the 99th percentile.
func (h *Histogram) Quantile(part float64) clock.Time {
	want := int(part*float64(h.Count) + 0.5)
	for i, n := range h.buckets {
		if want -= int(n); n > 0 && want <= 0 {
			return min(max(bucketEnd(i), h.Min), h.Max)
		}
	}
	return h.Max
}

// A Bar is a bucket of a Histogram that has something in it.
type Bar struct {
	UpTo  clock.Time `json:"up_to_ns"`
	Count uint32     `json:"count"`
}

// Bars are the buckets that are not empty, from the shortest duration.
func (h *Histogram) Bars() (list []Bar) {
	for i, n := range h.buckets {
		if n > 0 {
			list = append(list, Bar{bucketEnd(i), n})
		}
	}
	return list
}
