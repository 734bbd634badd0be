package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"xroce/bench/worker"
	"xroce/roce"
)

// TestStarved: a peer that is not scheduled is no failure of a run, anything else is.
func TestStarved(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{io.EOF, false},
		{errors.New("anything"), false},
		{fmt.Errorf("x: %w", context.DeadlineExceeded), true},
		{fmt.Errorf("x: %w", os.ErrDeadlineExceeded), true},
		{fmt.Errorf("x: %w", &roce.WorkError{Status: roce.StatusRetryExcErr}), true},
		{&roce.WorkError{Status: roce.StatusWRFlushErr}, true},
		{&roce.WorkError{Status: roce.StatusRemAccessErr}, false},
	} {
		if got := starved(tt.err); got != tt.want {
			t.Errorf("starved(%v) = %v", tt.err, got)
		}
	}
}

// TestMessageDepth: a sender has much under way, and no more of long messages than some megabytes.
func TestMessageDepth(t *testing.T) {
	for length, want := range map[int]int{
		0: sendDepth, 64: sendDepth, 64 << 10: 128, 1 << 20: 8, 1 << 24: 8,
	} {
		o := worker.Options{Message: length}
		if got := depth(o); got != want || got%ticks(o) != 0 {
			t.Errorf("%d messages of %d bytes, want %d, of which %d at once", got, length, want,
				ticks(o))
		}
	}
}

// TestMessageModesMeet: each work has another one at the other end, of the same kind.
func TestMessageModesMeet(t *testing.T) {
	listening := map[waiting]int{}
	for name, mode := range messageModes {
		if mode.run == nil {
			t.Errorf("%s does nothing", name)
		}
		if mode.listens {
			listening[mode.how]++
		}
	}
	if listening[always] == 0 || listening[asUsual] == 0 {
		t.Errorf("who listens: %v", listening)
	}
}
