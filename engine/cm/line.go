package cm

import (
	"math"
	"slices"

	"xroce/roce"
	"xroce/roce/cm"
)

// A line is where searches for strangers wait for their turn. There are so many turns at
// once, and one more each interval.
type line struct {
	waiting  []*search // the oldest first
	burst    roce.Time
	interval roce.Time
	paid     roce.Time // by when the turns that were taken are paid for
	hops     hops      // stations that lead to somebody: nil where that does not matter
	theirs   bool      // it is the turn of those
}

// join adds a search.
func (l *line) join(s *search) {
	s.line = l
	l.waiting = append(l.waiting, s)
}

// leave takes a search out of the line in which it waits, if any.
func (s *search) leave() {
	if s.line != nil {
		s.line.waiting = slices.DeleteFunc(s.line.waiting, func(x *search) bool { return x == s })
		s.line = nil
	}
}

// turn is when there is another turn.
func (l *line) turn() roce.Time { return l.paid - (l.burst-1)*l.interval }

// ready reports whether it is the turn of a search.
func (l *line) ready(now roce.Time) bool { return len(l.waiting) > 0 && now >= l.turn() }

// next takes the search whose turn it is: the oldest one of the station that has the fewest
// requests waiting, so that nobody waits longer for a station that asks all the time. A search
// that several stations wait for is one of each: who asks first in the name of somebody else
// does not make him wait. A station that leads to somebody, as a router does, goes before others
// at each second turn, unless it has more than half of what waits: strangers can write any station
// that is not there, and also one that is.
func (l *line) next(now roce.Time) *search {
	l.paid = max(l.paid, now) + l.interval
	l.theirs = !l.theirs
	from, all := map[cm.Via]int{}, 0
	for _, x := range l.waiting {
		for _, r := range x.requests {
			from[r.event.Path.Via]++
			all++
		}
	}
	first, least := l.waiting[0], math.MaxInt
	for _, x := range l.waiting {
		for _, r := range x.requests {
			via := r.event.Path.Via
			n := from[via]
			if l.theirs && l.hops.lead(via.MAC) && n <= all/2 {
				n = 0
			}
			if n < least {
				first, least = x, n
			}
		}
	}
	first.leave()
	return first
}
