package play

import (
	"context"
	"testing"
	"time"

	"xroce/bench/interop/internal/cases"
	"xroce/bench/interop/internal/lab"
)

// TestEndStandsStill: a case whose end in the VM cannot be stopped, because the VM stands still,
// ends and names it.
func TestEndStandsStill(t *testing.T) {
	ours := func(status int) lab.End {
		done := make(chan struct{})
		close(done)
		return lab.End{
			Name: "xroce", Done: done, Stop: func() {},
			Output: func() string { return "" }, Status: func() int { return status },
		}
	}
	theirs := lab.End{
		Name: "ib_send_bw", Done: make(chan struct{}), Stop: func() {},
		Patience: time.Millisecond,
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx   context.Context
		wait  func(context.Context, [2]lab.End) string
		us    lab.End
		wrong string
	}{
		"failing": {t.Context(), failingClient, ours(1), "ib_send_bw cannot be stopped"},
		"that did not fail": {
			t.Context(), failingClient, ours(0),
			"xroce ended with status 0; ib_send_bw cannot be stopped",
		},
		"late": {
			over, failingClient,
			lab.End{Name: "xroce", Stop: func() {}, Patience: 1},
			"not done in time; ib_send_bw cannot be stopped; xroce cannot be stopped",
		},
		"turned away": {t.Context(), turnedAway, ours(1), "ib_send_bw cannot be stopped"},
	} {
		if wrong := c.wait(c.ctx, [2]lab.End{theirs, c.us}); wrong != c.wrong {
			t.Errorf("%s: %q, want %q", name, wrong, c.wrong)
		}
	}
}

func failingClient(ctx context.Context, ends [2]lab.End) string {
	return failing(ctx, ends, cases.TheyServe)
}
