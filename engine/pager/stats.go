package pager

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Stats are what Linux counts for a region with on-demand paging, under its names
// (rdma statistic show mr). They count pages, and those with handled events.
type Stats struct {
	// PageFaults are pages that were absent when an access needed them, and brought in.
	PageFaults uint64 `json:"page_faults"`
	// PageFaultsHandled are the requests that brought some in.
	PageFaultsHandled uint64 `json:"page_faults_handled"`
	// PageInvalidations are pages that were present once and gone at a later access.
	PageInvalidations uint64 `json:"page_invalidations"`
	// PageInvalidationsHandled are the accesses that met such pages.
	PageInvalidationsHandled uint64 `json:"page_invalidations_handled"`
	// PagePrefetch are pages that advice brought in or found present.
	PagePrefetch uint64 `json:"page_prefetch"`
	// PageFaultWait is the time from the access that found pages absent to their being there,
	// of all PageFaultsHandled together. This one is not Linux's.
	PageFaultWait time.Duration `json:"page_fault_wait_ns"`
}

// tally counts for a region, and for the device with it.
type tally struct {
	faults, faultsHandled, invalidations, invalidationsHandled, prefetch atomic.Uint64

	waited atomic.Int64 // nanoseconds
	device *tally       // nil of the device's own
}

func (t *tally) stats() Stats {
	return Stats{
		PageFaults: t.faults.Load(), PageFaultsHandled: t.faultsHandled.Load(),
		PageInvalidations:        t.invalidations.Load(),
		PageInvalidationsHandled: t.invalidationsHandled.Load(),
		PagePrefetch:             t.prefetch.Load(),
		PageFaultWait:            time.Duration(t.waited.Load()),
	}
}

func (t *tally) fault(pages uint64, waited time.Duration) {
	for ; t != nil; t = t.device {
		t.faults.Add(pages)
		t.faultsHandled.Add(1)
		t.waited.Add(int64(waited))
	}
}

func (t *tally) invalidated(pages uint64) {
	for ; t != nil; t = t.device {
		t.invalidations.Add(pages)
		t.invalidationsHandled.Add(1)
	}
}

func (t *tally) prefetched(pages uint64) {
	for ; t != nil; t = t.device {
		t.prefetch.Add(pages)
	}
}

// LatencyBuckets is the number of buckets of a Latency.
const LatencyBuckets = 24

// Latency is a histogram of how long faults took, from the access that found a page
// absent to the page being there. Bucket i counts those that took less than
// LatencyBound(i), and not less than the bound before.
type Latency [LatencyBuckets]uint64

// LatencyBound is the end of bucket i: 1 us for the first and twice as long for each
// next. The last has no end.
func LatencyBound(i int) time.Duration { return time.Microsecond << i }

// latency counts a Latency.
type latency [LatencyBuckets]atomic.Uint64

func (l *latency) observe(d time.Duration) {
	l[min(bits.Len64(uint64(d/time.Microsecond)), LatencyBuckets-1)].Add(1)
}

func (l *latency) read() (out Latency) {
	for i := range l {
		out[i] = l[i].Load()
	}
	return out
}
