package clock_test

import (
	"testing"

	"xroce/roce/clock"
)

// TestSooner: 0 is never, on either side.
func TestSooner(t *testing.T) {
	for _, tt := range []struct{ a, b, want clock.Time }{
		{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {3, 5, 3}, {5, 3, 3}, {4, 4, 4},
	} {
		if got := clock.Sooner(tt.a, tt.b); got != tt.want {
			t.Errorf("Sooner(%d, %d) = %d, not %d", tt.a, tt.b, got, tt.want)
		}
	}
}
