package timer

import (
	"container/heap"

	"xroce/roce/clock"
)

// A Timer is something that happens at a time. The zero value is not set.
type Timer struct {
	// Run is what happens. It may set and stop any timer, its own too.
	Run func(now clock.Time)

	at   clock.Time
	slot int // its place in the heap plus one, 0 when it is not set
}

// IsSet reports whether it will run.
func (t *Timer) IsSet() bool { return t.slot != 0 }

// A Set is the timers of a machine that are set. The zero value has none.
type Set struct{ heap timers }

// Len is how many are set.
func (s *Set) Len() int { return len(s.heap) }

// Set makes a timer run at a time, in place of the one that it was set to. A timer is in one
// Set only.
func (s *Set) Set(t *Timer, at clock.Time) {
	t.at = at
	if t.slot == 0 {
		heap.Push(&s.heap, t)
	} else {
		heap.Fix(&s.heap, t.slot-1)
	}
}

// Stop makes a timer not run. One that is not set stays so.
func (s *Set) Stop(t *Timer) {
	if t.slot != 0 {
		heap.Remove(&s.heap, t.slot-1)
	}
}

// Next returns when the earliest is due, false when none is set.
func (s *Set) Next() (clock.Time, bool) {
	if len(s.heap) == 0 {
		return 0, false
	}
	return s.heap[0].at, true
}

// Expire runs those that are due, the earliest first, also those that these set. A timer is not
// set any more when it runs.
func (s *Set) Expire(now clock.Time) {
	for len(s.heap) > 0 && s.heap[0].at <= now {
		due := s.heap[0]
		s.Stop(due)
		due.Run(now)
	}
}

// timers are a heap with the earliest on top.
type timers []*Timer

// Len, Less, Swap, Push and Pop are heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].slot, t[j].slot = i+1, j+1
}

// Push adds a timer at the end.
func (t *timers) Push(x any) {
	added := x.(*Timer)
	*t = append(*t, added)
	added.slot = len(*t)
}

// Pop takes the last one out.
func (t *timers) Pop() any {
	old := *t
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	last.slot = 0
	return last
}
