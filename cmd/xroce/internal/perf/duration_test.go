package perf

import (
	"errors"
	"testing"
	"time"

	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// TestPeerWithLessTime: an end that receives by time receives for all of it, also of a service
// that loses messages and of a tool that ends before: none of how many was lost.
func TestPeerWithLessTime(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeRC, roce.TypeUC, roce.TypeUD} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			// An end that was not scheduled for all of its time has no result, and has more.
			for d := 100 * time.Millisecond; !lessTime(t, typ, d); d *= 2 {
				if d > timeout.Scaled(10*time.Second) {
					t.Fatalf("no result of %v", d)
				}
			}
		})
	}
}

// lessTime has the client end before the server does, and reports whether it had the time to
// send anything.
func lessTime(t *testing.T, typ roce.QPType, d time.Duration) bool {
	t.Helper()
	c := brief(Test{Verb: Send})
	c.Type, c.Size = typ, 1024
	p := newPair(t, c)
	for i, d := range []time.Duration{d, d + 3*time.Second} {
		p.ends[i].Duration, p.ends[i].asTool = d, true
	}
	if errs := p.run(t); errs[0] != nil || errs[1] != nil {
		t.Fatalf("client %v, server %v", errs[0], errs[1])
	}
	for i, r := range p.records {
		switch {
		case len(r.Rows) != 1 || r.Rows[0].Lost != 0:
			t.Errorf("end %d: %+v", i, r.Rows)
		case r.Rows[0].Iters == 0:
			return false
		case r.Rows[0].Average <= 0:
			t.Errorf("end %d: %+v", i, r.Rows)
		}
	}
	return true
}

// TestLatencyByTimeWithLoss: what waits for a message that was lost measures no latency: the
// time that passed meanwhile is no part of a result.
func TestLatencyByTimeWithLoss(t *testing.T) {
	for _, typ := range []roce.QPType{roce.TypeUC, roce.TypeUD} {
		t.Run(typ.String(), func(t *testing.T) {
			t.Parallel()
			c := brief(Test{Send, true})
			c.Type, c.Size, c.Duration = typ, 64, 3*time.Second
			p := newPair(t, c)
			p.ends[0].Progress = func(int64, int64) {
				if err := p.network.SetFaults(sim.Faults{Drop: 1}); err != nil {
					t.Error(err)
				}
			}
			errs := p.run(t)
			p.wantsNoResult(t, errs)
			if !errors.Is(errs[0], errLost) && !errors.Is(errs[1], errLost) {
				t.Errorf("client %v, server %v", errs[0], errs[1])
			}
		})
	}
}
