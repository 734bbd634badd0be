package rdmacm

import "time"

// A RoundTrip is how long the rounds of a client took: two messages each way, a READ and
// a WRITE.
type RoundTrip struct{ Min, Mean, Max time.Duration }

// roundTrips adds up the rounds of a client.
type roundTrips struct {
	rounds        int
	min, max, sum time.Duration
}

// add takes a round.
func (t *roundTrips) add(d time.Duration) {
	if t.rounds == 0 || d < t.min {
		t.min = d
	}
	t.max = max(t.max, d)
	t.sum += d
	t.rounds++
}

// result is what the rounds came to, nil when there was none.
func (t *roundTrips) result() *RoundTrip {
	if t.rounds == 0 {
		return nil
	}
	return &RoundTrip{Min: t.min, Mean: t.sum / time.Duration(t.rounds), Max: t.max}
}
