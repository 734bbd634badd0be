package demo

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"xroce/cmd/xroce/internal/transfer"
)

// TestUntilKept: a connection that hosts lost because they did not run is made again with longer
// timeouts, and nothing else is tried twice.
func TestUntilKept(t *testing.T) {
	lost, other := fmt.Errorf("%w: retries", transfer.ErrLost), errors.New("a byte is wrong")
	for name, c := range map[string]struct {
		results []error
		want    error
		tries   int
	}{
		"kept":        {[]error{nil}, nil, 1},
		"lost":        {[]error{lost, nil}, nil, 2},
		"always lost": {[]error{lost, lost, lost}, lost, 3},
		"other":       {[]error{other}, other, 1},
		"lost, other": {[]error{lost, other}, other, 2},
	} {
		var used []uint8
		row, err := untilKept(func(life uint8) (LossRow, error) {
			used = append(used, life)
			return LossRow{Bytes: 7}, c.results[len(used)-1]
		})
		if err != c.want || row.Tries != c.tries || row.Bytes != 7 ||
			!slices.Equal(used, lives[:c.tries]) {
			t.Errorf("%s: %+v, %v, lives %v", name, row, err, used)
		}
	}
}
