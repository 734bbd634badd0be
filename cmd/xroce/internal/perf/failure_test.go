package perf

import (
	"errors"
	"strings"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
)

// TestFailedWork: when nothing arrives any more, no end has a result, and the end that
// waits for an acknowledgement says which work failed and why, however the test ends.
func TestFailedWork(t *testing.T) {
	for _, test := range Tests {
		for _, mode := range []struct {
			name   string
			change func(c *Config)
		}{
			{"iterations", func(*Config) {}},
			{"duration", func(c *Config) { c.Duration = time.Hour }},
			{"events", func(c *Config) { c.Events = true }},
			{"both", func(c *Config) { c.Both, c.QPs = true, 2 }},
		} {
			if mode.name == "both" && test.Latency ||
				mode.name == "events" && test == (Test{Write, true}) {
				continue // there is no such test
			}
			t.Run(test.Name()+" "+mode.name, func(t *testing.T) {
				t.Parallel()
				c := brief(test)
				c.Timeout = 10 // its retries run out soon
				mode.change(&c)
				p := newPair(t, c)
				for i := range p.ends {
					p.ends[i].Progress = func(int64, int64) {
						if err := p.network.SetFaults(sim.Faults{Drop: 1}); err != nil {
							t.Error(err)
						}
					}
				}
				errs := p.run(t)
				p.wantsNoResult(t, errs)
				failed := 0
				for _, err := range errs {
					var w *roce.WorkError
					if errors.As(err, &w) && w.Status == roce.StatusRetryExcErr {
						failed++
					}
					if err != nil && strings.Contains(err.Error(), "of 0") {
						t.Errorf("no total: %v", err)
					}
				}
				if failed == 0 {
					t.Errorf("nobody says that the peer does not answer: %q", errs)
				}
			})
		}
	}
}
