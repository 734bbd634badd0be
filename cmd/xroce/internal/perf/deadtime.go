package perf

import "time"

// trips are the round trips of a latency test by duration that are part of its result.
type trips struct {
	counted uint64
	last    int64 // when the last of these was over
	came    int64 // when the last of all was
}

// add notes that a round trip was over, which counts or does not.
func (t *trips) add(now int64, counts bool) {
	if t.came = now; counts {
		t.counted, t.last = t.counted+1, now
	}
}

// mean is how long one took when the sample began at from, 0 when there was none. The time ends
// with the last one: what passes behind it is no latency.
func (t *trips) mean(from int64) int64 {
	if t.counted == 0 {
		return 0
	}
	return (t.last - from) / int64(t.counted)
}

// verdict is what a latency test by duration with a gap between its messages has come to when its
// time is over: nil when it has a result, and dead when it was measured for a part of that time
// only.
func (t *timer) verdict(s *trips, gap time.Duration, dead error) error {
	if s.counted == 0 && s.came > t.from {
		return errNoTrip // one takes longer than the time
	}
	// Where this end was not scheduled at the end of the time, nobody knows what came. What came
	// behind the time, from a peer that goes on, makes that in which nothing did no shorter.
	if t.looked-max(s.last, t.from) >= t.still(s, gap) {
		return dead
	}
	if s.counted == 0 {
		return errNoTrip
	}
	return nil
}

// still is how long nothing may come at the end of the time. That is no part of what is measured,
// so there is no need to be strict with an end that was not scheduled, or with a packet that is
// sent again: only with a result that is of a part of the time.
func (t *timer) still(s *trips, gap time.Duration) int64 {
	most := max(t.window/4, int64(hiccup), 2*s.mean(t.from))
	return max(min(most, t.window/2), 2*int64(gap))
}
