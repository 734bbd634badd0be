package recovery_test

import (
	"math"
	"testing"

	"xroce/roce/clock"
	"xroce/roce/recovery"
)

const (
	never = math.MaxInt64
	start = clock.Second // 0 is no time to send at
)

// armed returns the time that an armed probe waits.
func armed(p *recovery.TailProbe) clock.Time {
	p.Arm(0, never)
	return p.Deadline()
}

// TestProbeInterval: a millisecond before any sample, then the round trip and four
// times its variation, 200 us at least; doubled with each probe, until one is answered
// in time.
func TestProbeInterval(t *testing.T) {
	p := recovery.NewTailProbe(false)
	var sacked recovery.Set
	if got := armed(&p); got != clock.Millisecond {
		t.Errorf("before any sample %d", got)
	}
	p.Sent(start, 7, true, true)
	p.Acknowledged(start+10*clock.Microsecond, 8, &sacked)
	if got := armed(&p); got != 200*clock.Microsecond {
		t.Errorf("after a short round trip %d", got)
	}
	p.Sent(start, 9, true, true)
	p.Acknowledged(start+4*clock.Millisecond, 10, &sacked)
	long := armed(&p)
	if long <= clock.Millisecond {
		t.Errorf("after a long round trip %d", long)
	}
	for i := range 20 {
		p.Fire(0)
		if got, want := armed(&p), long<<min(i+1, 10); got != want {
			t.Fatalf("after %d probes %d, not %d", i+1, got, want)
		}
	}
	p.Advanced(long) // answered in time
	if got := armed(&p); got != long || p.InVain() {
		t.Errorf("after an answer in time %d", got)
	}
}

// TestProbeAcknowledgedOutOfTime: an answer too soon is one to what was sent before, one
// too late says that the round trip grew. Neither takes the doubling back.
func TestProbeAcknowledgedOutOfTime(t *testing.T) {
	for _, at := range []clock.Time{0, clock.Second} {
		p := recovery.NewTailProbe(false)
		var sacked recovery.Set
		p.Sent(start, 1, true, true)
		p.Acknowledged(start+100*clock.Microsecond, 2, &sacked)
		before := armed(&p)
		p.Fire(0)
		p.Advanced(at)
		if got := armed(&p); got != 2*before || p.InVain() {
			t.Errorf("answered at %d: %d, not %d", at, got, 2*before)
		}
	}
}

// TestProbeSamples: what was sent twice, or asks for no answer, is no sample (Karn);
// what the peer holds ends one as an answer does.
func TestProbeSamples(t *testing.T) {
	var none, kept recovery.Set
	kept.Add(3)
	for _, tt := range []struct {
		name   string
		send   func(*recovery.TailProbe)
		sacked *recovery.Set
		want   clock.Time
	}{
		{"asks nothing", func(p *recovery.TailProbe) {
			p.Sent(start, 3, true, false)
		}, &none, 1000},
		{"sent again", func(p *recovery.TailProbe) {
			p.Sent(start, 3, true, true)
			p.Sent(start+1, 3, false, true)
		}, &none, 1000},
		{"another sent again", func(p *recovery.TailProbe) {
			p.Sent(start, 3, true, true)
			p.Sent(start+1, 2, false, true)
		}, &none, 1200},
		{"held", func(p *recovery.TailProbe) { p.Sent(start, 3, true, true) }, &kept, 1200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := recovery.NewTailProbe(false)
			tt.send(&p)
			acked := tt.sacked == &none
			if acked {
				p.Acknowledged(start+400*clock.Microsecond, 4, tt.sacked)
			} else {
				p.Acknowledged(start+400*clock.Microsecond, 1, tt.sacked)
			}
			// A first sample of 400 us makes 400 + 4 * 200.
			if got := armed(&p) / clock.Microsecond; got != tt.want {
				t.Errorf("waits %d us, not %d", got, tt.want)
			}
		})
	}
}

// TestProbeGivesWay: there is no probe when another timer is due first.
func TestProbeGivesWay(t *testing.T) {
	p := recovery.NewTailProbe(true)
	if p.Arm(0, clock.Millisecond); p.Deadline() != 0 {
		t.Error("a probe at the time of the other timer")
	}
	// The reorder window comes on top.
	p.Arm(5, never)
	if p.Deadline() != 5+clock.Millisecond+100*clock.Microsecond {
		t.Errorf("deadline %d", p.Deadline())
	}
	p.Fire(6)
	if p.Abort(); p.Pending() || p.Deadline() != 0 {
		t.Error("an aborted probe goes on")
	}
}
