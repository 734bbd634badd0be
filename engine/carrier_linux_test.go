package engine

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestAwaitCarrier: it looks until the link is back, and no longer.
func TestAwaitCarrier(t *testing.T) {
	for _, c := range []struct {
		away  int // looks that find no link
		err   error
		limit time.Duration
		looks int // 0 for any number
		fails bool
	}{
		{away: 0, limit: time.Hour, looks: 1},
		{away: 2, limit: time.Hour, looks: 3},
		{away: 1 << 30, limit: time.Nanosecond, fails: true},
		{err: unix.ENODEV, limit: time.Hour, looks: 1, fails: true},
	} {
		looks := 0
		err := awaitCarrier(func() (bool, error) {
			looks++
			return looks > c.away, c.err
		}, c.limit)
		if (err != nil) != c.fails || c.err != nil && !errors.Is(err, c.err) ||
			c.looks > 0 && looks != c.looks {
			t.Errorf("%+v: %v after %d looks", c, err, looks)
		}
	}
}
