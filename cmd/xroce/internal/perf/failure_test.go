package perf

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/wire"
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

// TestCause: whatever ended a run, such as that the peer hung up, work that failed here is told
// first, and after that a request of the peer that was refused.
func TestCause(t *testing.T) {
	network, err := sim.NewNetwork(1, systemClock{time.Now()}, sim.Faults{})
	if err != nil {
		t.Fatal(err)
	}
	dev := device(t, network, 1, engine.Options{})
	dead := roce.Attr{State: roce.StateErr}
	for _, tt := range []struct {
		name  string
		fails func(e *end) error
		says  string
		work  bool
	}{
		{"nothing", func(*end) error { return nil }, unix.EPIPE.Error(), false},
		{"work", (*end).supply, roce.StatusWRFlushErr.String(), true},
		{"request", func(*end) error { return nil }, "refused a request of the peer", false},
	} {
		c := brief(Test{Verb: Send})
		e, err := newEnd(dev, &c, ownSystem, wire.MTU1024, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		e.prepare(c.Size)
		if err := tt.fails(e); err != nil {
			t.Fatal(err)
		}
		if tt.name != "nothing" {
			if err := e.flows[0].qp.Modify(&dead, roce.AttrState); err != nil {
				t.Fatal(err)
			}
		}
		err = e.cause(unix.EPIPE)
		if !errors.Is(err, unix.EPIPE) || errors.Is(err, roce.ErrFailed) != tt.work ||
			!strings.Contains(strings.Split(err.Error(), "; then")[0], tt.says) {
			t.Errorf("%s: %v", tt.name, err)
		}
		e.close()
	}
}
