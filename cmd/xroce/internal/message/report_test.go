package message

import "testing"

// TestReportIsChecked: what a peer says of itself is compared, and a peak that nobody reaches is
// not taken over: it would make a result that no JSON can hold.
func TestReportIsChecked(t *testing.T) {
	for _, c := range []struct {
		r    report
		peak float64
		good bool
	}{
		{report{7, 1e6}, 1e6, true},
		{report{7, 0}, 0, true},
		{report{7, -5}, 0, true},
		{report{7, 1e308}, 0, true},
		{report{8, 1e6}, 1e6, false},
	} {
		got := c.r
		if err := got.check(7); (err == nil) != c.good || got.Peak != c.peak {
			t.Errorf("%+v: %v, peak %g", c.r, err, got.Peak)
		}
	}
}
