package campaign

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
)

// count is what the runs of these tests count.
type count struct{ runs int }

func add(sum, run *count) { sum.runs += run.runs }

// sums is a trial whose hash is what a function says of the seed.
func sums(hash func(seed uint64) uint64) *Trial[count] {
	return &Trial[count]{
		Run: func(_ context.Context, seed uint64, log io.Writer) *Result[count] {
			if log != nil {
				fmt.Fprintf(log, "seed %d\n", seed)
			}
			r := &Result[count]{Seed: seed, Hash: hash(seed), Stats: count{1}}
			if seed == 7 {
				r.Violation = &Violation{"T1 luck", 1500, "it is seven"}
				r.Config, r.Last, r.Replay = "seven\n", []string{"a", "b"}, "do 7"
			}
			return r
		},
		Add: add, Determinism: "T2 determinism",
	}
}

// TestCampaign runs each seed once, in the order in which it goes with one worker, and tells of
// each that failed.
func TestCampaign(t *testing.T) {
	var log strings.Builder
	var failed []string
	var done []uint64
	c := &Campaign[count]{
		From: 5, To: 8, Workers: 1, Twice: 2, Log: &log,
		Failed: func(r *Result[count]) { failed = append(failed, r.String()) },
		Done:   func(n uint64) { done = append(done, n) },
	}
	sum := c.RunSeeds(t.Context(), sums(func(seed uint64) uint64 { return seed }))
	want := &Summary[count]{Seeds: 4, Failed: []uint64{7}, Stats: count{4}}
	if !reflect.DeepEqual(sum, want) || !reflect.DeepEqual(done, []uint64{1, 2, 3, 4}) {
		t.Errorf("the summary is %+v after %v", sum, done)
	}
	text := "seed 7: T1 luck at 1.500us: it is seven\nseven\na\nb\nreplay: do 7\n"
	if !reflect.DeepEqual(failed, []string{text}) {
		t.Errorf("failures: %q", failed)
	}
	if log.String() != "seed 5\nseed 6\nseed 7\nseed 8\n" {
		t.Errorf("the log is %q: one run of a seed is logged", log.String())
	}
}

// TestDifferentRunsAreSeen has every run make another hash: seeds that run twice fail.
func TestDifferentRunsAreSeen(t *testing.T) {
	hash := uint64(0)
	c := &Campaign[count]{From: 1, To: 10, Workers: 1, Twice: 4}
	sum := c.RunSeeds(t.Context(), sums(func(uint64) uint64 { hash++; return hash }))
	if want := []uint64{4, 7, 8}; !reflect.DeepEqual(sum.Failed, want) {
		t.Errorf("failed are %v, want %v", sum.Failed, want)
	}
}

// TestManyWorkers counts each seed once whoever runs it.
func TestManyWorkers(t *testing.T) {
	c := &Campaign[count]{From: 1, To: 1000, Workers: 4, Twice: 2}
	sum := c.RunSeeds(t.Context(), sums(func(seed uint64) uint64 { return seed }))
	if sum.Seeds != 1000 || sum.Stats.runs != 1000 || len(sum.Failed) != 1 {
		t.Errorf("the summary is %+v", sum)
	}
}

// TestProtect makes a panic a violation, with its stack.
func TestProtect(t *testing.T) {
	if v := Protect("T3 panic", func() {}); v != nil {
		t.Errorf("no panic is %v", v)
	}
	v := Protect("T3 panic", func() { panic("at the disco") })
	if v == nil || v.Invariant != "T3 panic" || !strings.Contains(v.What, "at the disco\n") ||
		!strings.Contains(v.What, "campaign_test.go") {
		t.Errorf("a panic is %v", v)
	}
}
