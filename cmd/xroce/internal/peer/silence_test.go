package peer

import (
	"testing"
	"time"
)

// TestWatch: a position that stays the same is silence, unless nobody was scheduled for
// some of the time.
func TestWatch(t *testing.T) {
	now := time.Unix(1000, 0)
	w := newWatch(time.Second, now, 7)
	for i, look := range []struct {
		after    time.Duration
		position uint64
		want     bool
	}{
		{1000 * time.Millisecond, 8, false},
		{1001 * time.Millisecond, 8, true},
		{1002 * time.Millisecond, 9, false},
		{4000 * time.Millisecond, 9, false}, // the process was stopped
		{1000 * time.Millisecond, 10, false},
		{1501 * time.Millisecond, 10, false},
		{1500 * time.Millisecond, 10, true},
		{4000 * time.Millisecond, 11, false},
		{1000 * time.Millisecond, 11, true}, // since then nothing has come all the same
	} {
		now = now.Add(look.after)
		if got := w.silent(now, look.position); got != look.want {
			t.Errorf("look %d after %v: %t, want %t", i, look.after, got, look.want)
		}
	}
}
