package campaign

import (
	"fmt"
	"slices"

	"xroce/roce"
)

// A Chaos is something that goes wrong beside the frames, and when. H names what that may be.
type Chaos[H fmt.Stringer] struct {
	At, For roce.Time
	What    H
	A, B    int // whom it meets, as What says
}

// String says what happens when.
func (c Chaos[H]) String() string {
	return fmt.Sprintf("%s %d %d at %s for %s", c.What, c.A, c.B, ClockTime(c.At),
		ClockTime(c.For))
}

// Sort puts what goes wrong into the order in which it does. What is drawn first goes first of
// what begins at the same time.
func Sort[H fmt.Stringer](list []Chaos[H]) {
	slices.SortStableFunc(list, func(a, b Chaos[H]) int { return int(a.At - b.At) })
}

// A Schedule is what is still to go wrong, the earliest first, and what is going wrong.
type Schedule[H fmt.Stringer] struct {
	Chaos []Chaos[H]
	undos []undo
}

// An undo ends what goes wrong.
type undo struct {
	at roce.Time
	do func()
}

// Later has something that goes wrong end at a time, or when the faults do.
func (s *Schedule[H]) Later(at roce.Time, do func()) { s.undos = append(s.undos, undo{at, do}) }

// Apply ends what is over, and begins what is due. In the quiet phase of a run all is over and
// nothing is due.
func (s *Schedule[H]) Apply(now roce.Time, quiet bool, begin func(Chaos[H])) {
	s.undos = slices.DeleteFunc(s.undos, func(u undo) bool {
		if u.at > now && !quiet {
			return false
		}
		u.do()
		return true
	})
	for len(s.Chaos) > 0 && !quiet && s.Chaos[0].At <= now {
		next := s.Chaos[0]
		s.Chaos = s.Chaos[1:]
		begin(next)
	}
}

// Times calls at with each time at which Apply has something to do.
func (s *Schedule[H]) Times(quiet bool, at func(roce.Time)) {
	for _, u := range s.undos {
		at(u.at)
	}
	if !quiet && len(s.Chaos) > 0 {
		at(s.Chaos[0].At)
	}
}
