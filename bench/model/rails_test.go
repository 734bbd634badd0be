package model

import (
	"testing"

	"xroce/roce/clock"
	"xroce/roce/msg"
)

// pour sends messages of 1 MiB over so many rails.
func pour(t *testing.T, rails, cut int) []clock.Time {
	t.Helper()
	costs := Costs{Delay: 5 * clock.Microsecond, Step: clock.Microsecond, PerByte: 1, Rails: rails}
	w := newWire(t, msg.Config{}, costs, 1)
	came, err := w.Pour(40, 1<<20, 4, msg.Get, cut)
	if err != nil {
		t.Fatalf("%d rails, cut behind %d: %v", rails, cut, err)
	}
	return came
}

// TestRails: two rails carry twice as much, and of two of which one is cut all arrives, in a time
// between.
func TestRails(t *testing.T) {
	one, two, dying := pour(t, 1, 0), pour(t, 2, 0), pour(t, 2, 20)
	a, b, c := one[39], two[39], dying[39]
	if gain := float64(a) / float64(b); gain < 1.8 || gain > 2.1 {
		t.Errorf("two rails are %.2f times as fast as one", gain)
	}
	if c <= b || c >= a {
		t.Errorf("one rail takes %d ns, two %d, one of two that is cut %d", a, b, c)
	}
}
