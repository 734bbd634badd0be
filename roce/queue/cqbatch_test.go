package queue

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// watched is a CQ, and what it told.
type watched struct {
	*CQ
	events, errors int
}

func newWatched(t *rapid.T, depth int) *watched {
	w := new(watched)
	var err error
	if w.CQ, err = NewCQ(depth, func() { w.events++ }); err != nil {
		t.Fatal(err)
	}
	w.OnError(func() { w.errors++ })
	return w
}

// TestBatch adds the same completions to one CQ in batches and to another one by one: they
// tell the same, and have the same.
func TestBatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		depth := rapid.IntRange(1, 16).Draw(t, "depth")
		one, many := newWatched(t, depth), newWatched(t, depth)
		now := clock.Time(1)
		for range rapid.IntRange(1, 12).Draw(t, "rounds") {
			switch rapid.IntRange(0, 3).Draw(t, "before") {
			case 0:
				solicited := rapid.Bool().Draw(t, "solicited only")
				if a, b := one.Arm(solicited), many.Arm(solicited); a != b {
					t.Fatalf("Arm returned %t, in batches %t", a, b)
				}
			case 1:
				count := rapid.Uint16Range(0, 5).Draw(t, "moderate")
				one.SetModeration(count, 10)
				many.SetModeration(count, 10)
			}
			batch := NewBatch(many.CQ)
			for range rapid.IntRange(0, BatchMax).Draw(t, "completions") {
				now++
				wc := verbs.Completion{WRID: uint64(now), Time: now}
				solicited := rapid.Bool().Draw(t, "solicited")
				if a, b := one.Push(&wc, solicited), batch.Add(&wc, solicited); a != b {
					t.Fatalf("Push returned %t, Add %t", a, b)
				}
			}
			batch.End()
			a, _ := one.NextDeadline()
			b, _ := many.NextDeadline()
			if one.events != many.events || one.errors != many.errors || a != b {
				t.Fatalf("%d events, %d errors, deadline %d; in batches %d, %d, %d",
					one.events, one.errors, a, many.events, many.errors, b)
			}
			var first, second [20]verbs.Completion
			n := rapid.IntRange(0, 20).Draw(t, "polled")
			na, ea := one.Poll(first[:n])
			nb, eb := many.Poll(second[:n])
			if diff := cmp.Diff(first[:na], second[:nb]); diff != "" || ea != eb {
				t.Fatalf("errors %v and %v, (-one by one +in batches):\n%s", ea, eb, diff)
			}
		}
	})
}

// TestBatchIsPolledWhole shows nothing of a batch before its end, and calls the event function
// when all of it can be polled.
func TestBatchIsPolledWhole(t *testing.T) {
	var cq *CQ
	var room [4]verbs.Completion
	polled := 0
	cq, err := NewCQ(4, func() { polled, _ = cq.Poll(room[:]) })
	if err != nil {
		t.Fatal(err)
	}
	batch := NewBatch(cq)
	for i := range uint64(3) {
		batch.Add(&verbs.Completion{WRID: i}, false)
	}
	if n, err := cq.Poll(room[:]); n != 0 || err != nil {
		t.Errorf("%d completions before the end, %v", n, err)
	}
	batch.End()
	if n, _ := cq.Poll(room[:]); n != 3 {
		t.Errorf("%d completions, want 3", n)
	}
	cq.Arm(false)
	for i := range uint64(3) {
		batch.Add(&verbs.Completion{WRID: i}, false)
	}
	batch.End()
	batch.End() // of nothing
	if polled != 3 {
		t.Errorf("the event came with %d completions, want 3", polled)
	}
}
