package gen

// A Search finds the largest rate at which no more than so much is lost, as RFC 2544, 26.1 has
// it: it begins with the largest rate there is, and halves what it does not know.
type Search struct {
	good, bad float64 // largest rate that was good, and smallest that was not
	step      float64 // what may remain unknown
	tried     bool
}

// NewSearch makes a search up to a rate, which ends when what is unknown is no more than a
// fraction of that.
func NewSearch(most, fraction float64) *Search {
	return &Search{bad: most, step: most * fraction}
}

// Next is the rate to try. ok is false when the search is over.
func (s *Search) Next() (rate float64, ok bool) {
	switch {
	case !s.tried:
		return s.bad, true
	case s.bad-s.good <= s.step:
		return 0, false
	}
	return (s.good + s.bad) / 2, true
}

// Tell says whether the rate of Next was good: it was reached, and no more was lost than may be.
func (s *Search) Tell(good bool) {
	rate, ok := s.Next()
	s.tried = true
	switch {
	case !ok:
	case good:
		s.good = rate
	default:
		s.bad = rate
	}
}

// Found is the largest rate that was good, 0 when none was.
func (s *Search) Found() float64 { return s.good }
