package sched

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/clock"
)

// A timer is an object with a node.
type timer struct{ node TimerNode[timer] }

func newTimer() *timer { return &newTimers(1)[0] }

func newTimers(n int) []timer {
	timers := make([]timer, n)
	for i := range timers {
		timers[i].node.Init(&timers[i])
	}
	return timers
}

// A wheelModel is the slow and obvious wheel: it looks at all of them.
type wheelModel map[*timer]clock.Time

func (m wheelModel) arm(who *timer, at clock.Time) {
	if old, in := m[who]; !in || at < old {
		m[who] = at
	}
}

func (m wheelModel) next() (at clock.Time, any bool) {
	at = math.MaxInt64
	for _, t := range m {
		at = min(at, t)
	}
	return at, len(m) > 0
}

// A wheelPair does everything on a wheel and on its model.
type wheelPair struct {
	wheel Wheel[timer]
	model wheelModel
	now   clock.Time
}

// advance moves the clock to now, takes out all whose time has come, and
// compares them one by one.
func (p *wheelPair) advance(now clock.Time) error {
	p.now = now
	for who := p.wheel.Pop(now); who != nil; who = p.wheel.Pop(now) {
		at, in := p.model[who]
		if !in || at != who.node.at || at > now {
			return fmt.Errorf("popped at %d what was armed for %d (%t)", now, at, in)
		}
		delete(p.model, who)
	}
	if at, any := p.model.next(); any && at <= now {
		return fmt.Errorf("at %d one armed for %d was left", now, at)
	}
	at, any := p.wheel.Next()
	if any && at <= now {
		return fmt.Errorf("at %d, with nothing due, next is %d", now, at)
	}
	return p.check()
}

// check compares what next says. What was removed may leave a bound behind, so
// it may be early, but never late.
func (p *wheelPair) check() error {
	want, wantAny := p.model.next()
	got, any := p.wheel.Next()
	if any != wantAny || (any && got > want) {
		return fmt.Errorf("at %d next is %d (%t), the earliest %d (%t)",
			p.now, got, any, want, wantAny)
	}
	return nil
}

// run lets virtual time pass as engine/sim does, until nothing is armed.
func (p *wheelPair) run() error {
	for steps := 0; ; steps++ {
		at, any := p.wheel.Next()
		if !any {
			break
		}
		if steps > 1e6 {
			return fmt.Errorf("no end: at %d next is %d", p.now, at)
		}
		if err := p.advance(max(p.now, at)); err != nil {
			return err
		}
	}
	if len(p.model) != 0 {
		return fmt.Errorf("%d never came", len(p.model))
	}
	return nil
}

// longest is the largest local ACK timeout, 4.096 us * 2^31: more than anything
// that is ever armed.
const longest = 8796 * clock.Second

// TestWheelAgainstModel arms, moves, removes and advances over all scales of
// time and compares with the model after each step.
func TestWheelAgainstModel(t *testing.T) {
	distance := rapid.Custom(func(t *rapid.T) clock.Time {
		scale := rapid.IntRange(0, 43).Draw(t, "scale")
		return min(longest, clock.Time(rapid.Int64Range(0, 1<<scale).Draw(t, "distance")))
	})
	rapid.Check(t, func(t *rapid.T) {
		// Near the end of all time the highest digits are in use.
		p := wheelPair{model: wheelModel{}}
		start := rapid.SampledFrom([]clock.Time{0, 1 << 46, math.MaxInt64 - 1<<50}).Draw(t, "start")
		if err := p.advance(start); err != nil {
			t.Fatal(err)
		}
		timers := newTimers(12)
		some := rapid.Custom(func(t *rapid.T) *timer {
			return &timers[rapid.IntRange(0, len(timers)-1).Draw(t, "timer")]
		})
		fail := func(err error) {
			if err != nil {
				t.Fatal(err)
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) { fail(p.check()) },
			"arm": func(t *rapid.T) {
				who, at := some.Draw(t, "arm"), p.now+distance.Draw(t, "by")
				p.wheel.Arm(&who.node, at)
				p.model.arm(who, at)
			},
			"late": func(t *rapid.T) {
				who, at := some.Draw(t, "arm"), max(0, p.now-distance.Draw(t, "since"))
				p.wheel.Arm(&who.node, at)
				p.model.arm(who, at)
			},
			"remove": func(t *rapid.T) {
				who := some.Draw(t, "remove")
				p.wheel.Remove(&who.node)
				delete(p.model, who)
			},
			"advance": func(t *rapid.T) { fail(p.advance(p.now + distance.Draw(t, "by"))) },
			"event": func(t *rapid.T) {
				if at, any := p.wheel.Next(); any {
					fail(p.advance(max(p.now, at)))
				}
			},
		})
		fail(p.run())
	})
}

// FuzzWheel is the same with two bytes a step.
func FuzzWheel(f *testing.F) {
	f.Add([]byte{0x00, 0x05, 0x41, 0x20, 0x82, 0x2a, 0xc3, 0x01, 0x80, 0xff})
	f.Add([]byte{0x01, 0x00, 0x01, 0x00, 0x41, 0x00, 0x81, 0x2b, 0x00, 0x2b, 0x80, 0x2a})
	f.Fuzz(func(t *testing.T, steps []byte) {
		p := wheelPair{model: wheelModel{}}
		timers := newTimers(16)
		for ; len(steps) >= 2; steps = steps[2:] {
			who := &timers[steps[0]%16]
			by := min(longest, clock.Time(steps[0]>>4&3)<<(steps[1]%44)|clock.Time(steps[1]>>6))
			var err error
			switch steps[0] >> 6 {
			case 0, 1:
				p.wheel.Arm(&who.node, p.now+by)
				p.model.arm(who, p.now+by)
				err = p.check()
			case 2:
				err = p.advance(p.now + by)
			case 3:
				p.wheel.Remove(&who.node)
				delete(p.model, who)
				err = p.check()
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := p.run(); err != nil {
			t.Fatal(err)
		}
	})
}

// TestWheelIsExact says that without removals next is the earliest deadline to
// the nanosecond, whatever its level, and that it is served then.
func TestWheelIsExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := wheelPair{model: wheelModel{}}
	for range 1000 {
		p.wheel.Arm(&newTimer().node, 0)
		if who := p.wheel.Pop(p.now); who == nil {
			t.Fatal("what is late is not served")
		}
		who, at := newTimer(), p.now+clock.Time(rng.Int64N(1<<rng.IntN(44)))
		p.wheel.Arm(&who.node, at)
		if next, any := p.wheel.Next(); !any || next != at {
			t.Fatalf("armed for %d, next is %d", at, next)
		}
		if at > p.now && p.wheel.Pop(at-1) != nil {
			t.Fatalf("served 1 ns early, at %d", at-1)
		}
		if p.now = at; p.wheel.Pop(at) != who {
			t.Fatalf("not served at %d", at)
		}
	}
}

// BenchmarkWheel measures with so many idle timers armed. A turn is what a
// round of progress pays when nothing is due, an ACK moves a deadline later,
// and a timer is one armed, reached and taken out.
func BenchmarkWheel(b *testing.B) {
	for _, idle := range []int{1, 100, 10000} {
		fill := func() *Wheel[timer] {
			w := &Wheel[timer]{}
			for i := range idle {
				w.Arm(&newTimer().node, longest+clock.Time(i)*clock.Microsecond)
			}
			return w
		}
		b.Run(fmt.Sprintf("turn/idle=%d", idle), func(b *testing.B) {
			w, now := fill(), clock.Time(0)
			b.ReportAllocs()
			for range b.N {
				if now += 300; w.Pop(now) != nil {
					b.Fatal("nothing was due")
				}
			}
		})
		b.Run(fmt.Sprintf("ack/idle=%d", idle), func(b *testing.B) {
			w, who, at := fill(), newTimer(), longest
			b.ReportAllocs()
			for range b.N {
				at++
				w.Arm(&who.node, at)
			}
		})
		b.Run(fmt.Sprintf("timer/idle=%d", idle), func(b *testing.B) {
			w, who := fill(), newTimer()
			b.ReportAllocs()
			for i := range b.N {
				at := clock.Time(i+67) * clock.Microsecond
				w.Arm(&who.node, at)
				if w.Pop(at) != who {
					b.Fatal("lost")
				}
			}
		})
	}
}

// TestWheelDoesNotAllocate runs timers of all scales.
func TestWheelDoesNotAllocate(t *testing.T) {
	w, timers, now := &Wheel[timer]{}, newTimers(32), clock.Time(0)
	if n := testing.AllocsPerRun(1000, func() {
		for i := range timers {
			w.Arm(&timers[i].node, now+clock.Time(1)<<(i+8))
		}
		now += clock.Millisecond
		for w.Pop(now) != nil {
			continue
		}
		w.Remove(&timers[31].node)
	}); n != 0 {
		t.Errorf("%v allocations a run", n)
	}
}
