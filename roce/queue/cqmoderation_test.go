package queue

import (
	"math"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// moderatedCQ returns an armed CQ and the number of its events.
func moderatedCQ(t *testing.T, depth int, count uint16, period clock.Time) (c *CQ, events *int) {
	t.Helper()
	events = new(int)
	c, err := NewCQ(depth, func() { *events++ })
	if err != nil {
		t.Fatal(err)
	}
	c.SetModeration(count, period)
	c.Arm(false)
	return c, events
}

// pushAt adds a successful completion that is not solicited.
func pushAt(c *CQ, at clock.Time) bool { return c.Push(&verbs.Completion{Time: at}, false) }

// TestModeration: with these completions at these times, the event comes with
// which of them, or at which time.
func TestModeration(t *testing.T) {
	for _, tt := range []struct {
		name   string
		depth  int
		count  uint16
		period clock.Time
		at     []clock.Time
		events int
		due    clock.Time // 0: nothing is held back
	}{
		{"count is reached", 64, 3, 100, []clock.Time{10, 20, 30}, 1, 0},
		{"one is missing", 64, 3, 100, []clock.Time{10, 20}, 0, 110},
		{"period counts from the first", 64, 3, 100, []clock.Time{0, 99}, 0, 100},
		{"count 0 is off", 64, 0, 100, []clock.Time{10}, 1, 0},
		{"count 1 is off", 64, 1, 100, []clock.Time{10}, 1, 0},
		{"period 0 is off", 64, 3, 0, []clock.Time{10}, 1, 0},
		{"period below 0 is off", 64, 3, -1, []clock.Time{10}, 1, 0},
		{"one event for each Arm", 64, 2, 100, []clock.Time{1, 2, 3, 4, 5}, 1, 0},
		{"full comes first", 4, 5, 100, []clock.Time{1, 2, 3, 4}, 1, 0},
		{"not yet full", 4, 5, 100, []clock.Time{1, 2, 3}, 0, 101},
		{"largest", 64, math.MaxUint16, math.MaxInt64, []clock.Time{5}, 0, math.MaxInt64},
	} {
		c, events := moderatedCQ(t, tt.depth, tt.count, tt.period)
		for _, at := range tt.at {
			pushAt(c, at)
		}
		due, ok := c.NextDeadline()
		if *events != tt.events || due != tt.due || ok != (tt.due != 0) {
			t.Errorf("%s: %d events, due at %d, %t", tt.name, *events, due, ok)
		}
		if !ok {
			continue
		}
		if c.HandleDeadline(due - 1); *events != tt.events {
			t.Errorf("%s: an event too early", tt.name)
		}
		if c.HandleDeadline(due); *events != tt.events+1 {
			t.Errorf("%s: no event when it is due", tt.name)
		}
		if c.HandleDeadline(due); *events != tt.events+1 {
			t.Errorf("%s: two events for one Arm", tt.name)
		}
		if _, ok := c.NextDeadline(); ok {
			t.Errorf("%s: still due", tt.name)
		}
	}
}

// TestSolicitedIsNotModerated: who waits for solicited completions gets the event
// at once, and others do not count.
func TestSolicitedIsNotModerated(t *testing.T) {
	failed := verbs.Completion{Status: verbs.StatusGeneralErr}
	for name, push := range map[string]func(c *CQ) bool{
		"solicited": func(c *CQ) bool { return c.Push(&verbs.Completion{}, true) },
		"failed":    func(c *CQ) bool { return c.Push(&failed, false) },
	} {
		events := 0
		c, err := NewCQ(64, func() { events++ })
		if err != nil {
			t.Fatal(err)
		}
		c.SetModeration(4, 100)
		c.Arm(true)
		for at := range clock.Time(8) {
			pushAt(c, at)
		}
		if _, ok := c.NextDeadline(); ok || events != 0 {
			t.Errorf("%s: %d events, deadline %t, before it came", name, events, ok)
		}
		if !push(c) || events != 1 {
			t.Errorf("%s: %d events", name, events)
		}
	}
}

// TestModerationChanges while an event is held back: it is raised when the new
// limits say so, and not forgotten.
func TestModerationChanges(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(c *CQ)
		events int
		due    clock.Time
	}{
		{"off by count", func(c *CQ) { c.SetModeration(1, 100) }, 1, 0},
		{"off by period", func(c *CQ) { c.SetModeration(9, 0) }, 1, 0},
		{"count already there", func(c *CQ) { c.SetModeration(2, 100) }, 1, 0},
		{"sooner", func(c *CQ) { c.SetModeration(9, 5) }, 0, 15},
		{"later", func(c *CQ) { c.SetModeration(9, 500) }, 0, 510},
		{"armed again", func(c *CQ) { c.Arm(false); c.Arm(true) }, 0, 110},
		{"polled", func(c *CQ) { _, _ = c.Poll(make([]verbs.Completion, 8)) }, 0, 110},
		{"purged", func(c *CQ) { c.Purge(0) }, 0, 110},
		{"shrunk to what is there", func(c *CQ) { _ = c.Resize(2) }, 1, 0},
		{"shrunk", func(c *CQ) { _ = c.Resize(3) }, 0, 110},
	} {
		c, events := moderatedCQ(t, 64, 9, 100)
		pushAt(c, 10)
		pushAt(c, 12)
		tt.change(c)
		if due, _ := c.NextDeadline(); *events != tt.events || due != tt.due {
			t.Errorf("%s: %d events, due at %d", tt.name, *events, due)
		}
	}
}

// TestEventHoldsNoLock: the event function may use the CQ as it likes.
func TestEventHoldsNoLock(t *testing.T) {
	var c *CQ
	polled := 0
	c, err := NewCQ(2, func() {
		n, _ := c.Poll(make([]verbs.Completion, 8))
		polled += n
		c.Arm(false)
		if err := c.Resize(2); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	c.Arm(false)
	pushAt(c, 1) // by push
	c.SetModeration(3, 10)
	pushAt(c, 2)
	c.HandleDeadline(12) // by the deadline
	pushAt(c, 13)
	c.SetModeration(0, 0) // by the change
	if polled != 3 {
		t.Errorf("polled %d, want 3", polled)
	}
}

// TestOnError comes once, for the first completion that is lost, with no lock
// held.
func TestOnError(t *testing.T) {
	c, err := NewCQ(2, nil)
	if err != nil {
		t.Fatal(err)
	}
	lost, polled := 0, 0
	c.OnError(func() {
		lost++
		polled, _ = c.Poll(make([]verbs.Completion, 8))
		c.OnError(func() { t.Error("called twice") })
	})
	for i, want := range []bool{true, true, false, true, true, false} {
		if pushAt(c, 1) != want {
			t.Errorf("completion %d: pushed %t", i, !want)
		}
	}
	if lost != 1 || polled != 2 {
		t.Errorf("%d calls, the first polled %d", lost, polled)
	}
}

// TestCQDoesNotAllocate, moderated or not.
func TestCQDoesNotAllocate(t *testing.T) {
	for _, count := range []uint16{0, 3} {
		c, events := moderatedCQ(t, 8, count, 10)
		now, dst := clock.Time(0), make([]verbs.Completion, 4)
		n := testing.AllocsPerRun(100, func() {
			now += 20
			c.Arm(false)
			pushAt(c, now)
			pushAt(c, now)
			if due, ok := c.NextDeadline(); ok {
				c.HandleDeadline(due)
			}
			_, _ = c.Poll(dst)
		})
		if n != 0 || *events == 0 {
			t.Errorf("count %d: %v allocations, %d events", count, n, *events)
		}
	}
}
