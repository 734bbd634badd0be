package gen

import (
	"errors"
	"math"

	"xroce/roce/clock"
)

// A Step is a part of a schedule: for a while the rate stands, or goes from From to To in a
// straight line.
type Step struct {
	From, To Rate       // of one unit; To of zero stands for From
	For      clock.Time // how long; 0 for ever, as only the last may be
}

// A Schedule says when frames are due: as soon as what was sent before them is less than what
// the rates came to until then. So a sender who was late catches up, and the mean is right.
type Schedule struct {
	steps []Step
	unit  Unit
	burst int

	step  int        // the current one
	begun clock.Time // when it began
	base  float64    // what was due by then
	spent float64
	group int // frames of the current burst that may still go
}

// ErrSchedule says that steps make no schedule.
var ErrSchedule = errors.New("gen: a schedule needs steps of one unit of rates above 0 " +
	"(max stands alone in a step), of which only the last may have no end")

// NewSchedule makes a schedule that begins at time 0, of frames in bursts of so many, at least
// 1. Percentages must have been resolved.
func NewSchedule(burst int, steps ...Step) (*Schedule, error) {
	if len(steps) == 0 || burst < 1 {
		return nil, ErrSchedule
	}
	s := &Schedule{steps: make([]Step, len(steps)), burst: burst}
	known := false
	for i, st := range steps {
		if st.To.IsMax() {
			st.To = st.From
		}
		s.steps[i] = st
		if st.For < 0 || st.For == 0 && i != len(steps)-1 || st.From.Unit != st.To.Unit ||
			st.From.Unit == OfLineRate || st.From.Value < 0 || st.To.Value < 0 ||
			st.From.IsMax() && !st.To.IsMax() {
			return nil, ErrSchedule
		}
		if st.From.IsMax() {
			continue
		}
		if known && st.From.Unit != s.unit {
			return nil, ErrSchedule
		}
		s.unit, known = st.From.Unit, true
	}
	return s, nil
}

// due is what the current step came to until t, counted from its begin.
func (st *Step) due(t clock.Time) float64 {
	sec := float64(t) / float64(clock.Second)
	sum := st.From.Value * sec
	if st.For > 0 {
		sum += (st.To.Value - st.From.Value) * sec * float64(t) / float64(st.For) / 2
	}
	return sum
}

// reach is how long after its begin a step has come to an amount: the reverse of due.
func (st *Step) reach(amount float64) clock.Time {
	var sec float64
	slope := 0.0
	if st.For > 0 {
		slope = (st.To.Value - st.From.Value) / (float64(st.For) / float64(clock.Second))
	}
	if slope == 0 {
		sec = amount / st.From.Value
	} else {
		root := st.From.Value*st.From.Value + 2*slope*amount
		if root < 0 {
			return math.MaxInt64 // the step ends before that
		}
		// The form that does not cancel when the slope is small.
		sec = 2 * amount / (st.From.Value + math.Sqrt(root))
	}
	ns := math.Ceil(sec * float64(clock.Second))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return clock.Time(ns)
}

// advance goes to the step of a time, and reports whether there is one.
func (s *Schedule) advance(now clock.Time) bool {
	for {
		st := &s.steps[s.step]
		if st.For == 0 || now-s.begun < st.For {
			return true
		}
		if s.step == len(s.steps)-1 {
			return false
		}
		if st.From.IsMax() {
			s.base = s.spent // what goes as fast as it goes leaves nothing to catch up with
		} else {
			s.base += st.due(st.For)
		}
		s.begun += st.For
		s.step++
	}
}

// Next returns when the next frame may go, not before now. ok is false when the schedule is
// over and all that was due in it has gone. The time must not go back.
func (s *Schedule) Next(now clock.Time) (at clock.Time, ok bool) {
	for {
		inside := s.advance(now)
		st := &s.steps[s.step]
		switch {
		case st.From.IsMax():
			return now, inside
		case !inside:
			// A frame is due at the end only if what is spent is a whole cost short of it.
			return now, s.group > 0 || s.base+st.due(st.For)-s.spent > slack
		case s.group > 0:
			return now, true
		}
		t := s.begun + max(0, st.reach(s.spent-s.base))
		if t < 0 { // beyond all time
			t = math.MaxInt64
		}
		if st.For == 0 || t < s.begun+st.For {
			return max(now, t), true
		}
		if s.step == len(s.steps)-1 {
			return now, false
		}
		// It is due in a later step: look there from its begin on.
		now = s.begun + st.For
	}
}

// slack is less than the cost of any frame, and more than what sums are wrong by.
const slack = 1e-3

// Spend notes that a frame of n bytes goes.
func (s *Schedule) Spend(n int) {
	if s.steps[s.step].From.IsMax() {
		s.spent += s.unit.cost(n)
		return
	}
	if s.group == 0 {
		s.group = s.burst
	}
	s.group--
	s.spent += s.unit.cost(n)
}

// Length is how long the schedule lasts, 0 for ever.
func (s *Schedule) Length() (sum clock.Time) {
	for _, st := range s.steps {
		if st.For == 0 {
			return 0
		}
		sum += st.For
	}
	return sum
}
