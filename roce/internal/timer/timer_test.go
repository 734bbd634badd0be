package timer

import (
	"math/rand/v2"
	"testing"

	"xroce/roce/clock"
)

// TestTimerModel sets, stops and lets expire at random, and compares with a map.
func TestTimerModel(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var set Set
	var now clock.Time
	timers := make([]Timer, 40)
	model := map[int]clock.Time{}
	ran := map[int]bool{}
	for i := range timers {
		timers[i].Run = func(at clock.Time) {
			due, ok := model[i]
			if !ok || due > at || timers[i].IsSet() {
				t.Fatalf("timer %d runs at %d: due %d, %t, still set %t", i, at, due, ok,
					timers[i].IsSet())
			}
			for j, other := range model {
				if other < due {
					t.Fatalf("timer %d of %d runs before %d of %d", i, due, j, other)
				}
			}
			delete(model, i)
			ran[i] = true
			if other := r.IntN(len(timers)); r.IntN(4) == 0 { // what runs may set and stop
				set.Stop(&timers[other])
				delete(model, other)
			} else if other == i {
				set.Set(&timers[i], at+1)
				model[i] = at + 1
			}
		}
	}
	for step := range 20_000 {
		i := r.IntN(len(timers))
		switch r.IntN(6) {
		case 0, 1, 2:
			at := now + clock.Time(r.IntN(50))
			set.Set(&timers[i], at)
			model[i] = at
		case 3, 4:
			set.Stop(&timers[i])
			delete(model, i)
		default:
			now += clock.Time(r.IntN(30))
			set.Expire(now)
		}
		first, any := clock.Time(0), false
		for _, at := range model {
			if !any || at < first {
				first, any = at, true
			}
		}
		if got, ok := set.Next(); got != first || ok != any || set.Len() != len(model) {
			t.Fatalf("step %d: the next is %d, %t, want %d, %t; %d are set, want %d", step, got,
				ok, first, any, set.Len(), len(model))
		}
	}
	if len(ran) != len(timers) {
		t.Errorf("%d timers ever ran", len(ran))
	}
}

// TestTimerAllocatesNothing sets and stops in a set that has had as many.
func TestTimerAllocatesNothing(t *testing.T) {
	var set Set
	var a, b Timer
	a.Run, b.Run = func(clock.Time) {}, func(clock.Time) {}
	set.Set(&a, 1)
	set.Set(&b, 2)
	set.Expire(2)
	if n := testing.AllocsPerRun(100, func() {
		set.Set(&a, 2)
		set.Set(&b, 1)
		set.Stop(&b)
		set.Expire(2)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
