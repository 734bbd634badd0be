package main

import (
	"testing"

	"xroce/bench/worker"
)

// TestWholeCaptures: a run whose captures are not whole does not count.
func TestWholeCaptures(t *testing.T) {
	counts := func(captured, missing uint64) worker.Report {
		return worker.Report{Counters: map[string]uint64{
			worker.Captured: captured, worker.CaptureMissing: missing,
		}}
	}
	for _, c := range []struct {
		name    string
		workers []worker.Report
		ends    int
		whole   bool
	}{
		{"none", []worker.Report{{}, {}}, 0, true},
		{"both", []worker.Report{counts(9, 0), counts(1, 0)}, 2, true},
		{"one", []worker.Report{{}, counts(1, 0)}, 1, true},
		{"missing", []worker.Report{counts(9, 0), counts(9, 1)}, 2, false},
		{"empty", []worker.Report{counts(0, 0), {}}, 1, false},
		{"not asked", []worker.Report{{}, {}}, 1, false},
	} {
		if err := wholeCaptures(c.workers, c.ends); (err == nil) != c.whole {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
