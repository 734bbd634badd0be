package load

import (
	"errors"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// lullLimit is how long an answer may take. The other end answers until it has heard nothing for
// some hundred milliseconds after its window: who was not scheduled for so long in a turn asks, is
// acknowledged, and waits for what never comes.
var lullLimit = timeout.Scaled(5 * time.Second)

// errUnanswered means that nothing came for lullLimit.
var errUnanswered = errors.New("load: the other end acknowledges and does not answer")

// A lull measures how long nothing comes, and reads the clock for that once in a while: whoever
// spins for an answer would measure that else. The zero value has heard something just now.
type lull struct {
	polls int
	since time.Time // zero until the clock was read
}

// pollsOfLull is how many polls without anything go by between two looks at the clock.
const pollsOfLull = 64

// heard notes how many came by a poll. The error is errUnanswered after too long without any.
func (s *lull) heard(came int, now func() time.Time) error {
	if came > 0 {
		*s = lull{}
		return nil
	}
	if s.polls++; s.polls%pollsOfLull != 0 {
		return nil
	}
	switch at := now(); {
	case s.since.IsZero():
		s.since = at
	case at.Sub(s.since) > lullLimit:
		return errUnanswered
	}
	return nil
}
