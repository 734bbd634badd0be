package msg

import (
	"container/heap"

	"xroce/roce/clock"
)

// A timer is something of the machine that happens at a time.
type timer struct {
	at   clock.Time
	slot int // its place in the heap plus one, 0 when it is not set
	run  func(now clock.Time)
}

// timers are those that are set, the earliest first.
type timers []*timer

// Len, Less, Swap, Push and Pop are heap.Interface.
func (t timers) Len() int           { return len(t) }
func (t timers) Less(i, j int) bool { return t[i].at < t[j].at }

func (t timers) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].slot, t[j].slot = i+1, j+1
}

// Push adds a timer at the end.
func (t *timers) Push(x any) {
	added := x.(*timer)
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

// set makes a timer run at a time, in place of the one before.
func (t *timers) set(what *timer, at clock.Time) {
	what.at = at
	if what.slot == 0 {
		heap.Push(t, what)
	} else {
		heap.Fix(t, what.slot-1)
	}
}

// stop makes a timer not run.
func (t *timers) stop(what *timer) {
	if what.slot != 0 {
		heap.Remove(t, what.slot-1)
	}
}
