package recovery_test

import (
	"testing"

	"xroce/roce/clock"
	"xroce/roce/recovery"
)

// TestRTT: the numbers of RFC 6298, section 2, worked out by hand.
func TestRTT(t *testing.T) {
	var e recovery.RTT
	if e.Smoothed() != 0 || e.RTO() != 0 {
		t.Fatal("a round trip without a sample")
	}
	for _, step := range []struct{ sample, smoothed, rto clock.Time }{
		{800, 800, 800 + 4*400},
		{800, 800, 800 + 4*300},  // variation 400 - 400/4
		{1600, 900, 900 + 4*425}, // 300 + (800-300)/4, 800 + 800/8
		{100, 800, 800 + 4*518},  // 425 + (800-425)/4 = 518, 900 - 800/8
	} {
		e.Sample(step.sample)
		if e.Smoothed() != step.smoothed || e.RTO() != step.rto {
			t.Errorf("after %d: %d and %d, not %d and %d", step.sample, e.Smoothed(), e.RTO(),
				step.smoothed, step.rto)
		}
	}
}

// TestGap: without a reorder window a gap is a loss at once, with one when enough
// packets have overtaken it or it has been open for long enough.
func TestGap(t *testing.T) {
	g := recovery.NewGap(false)
	if !g.Lost(5, 1) || g.Deadline() != 0 || g.Expired(1<<40) {
		t.Error("a gap may close where packets stay in order")
	}
	g = recovery.NewGap(true)
	if g.Lost(5, 1) || g.Deadline() != 5+100*clock.Microsecond {
		t.Errorf("the first packet that overtook: deadline %d", g.Deadline())
	}
	if g.Lost(50, 63) || g.Deadline() != 5+100*clock.Microsecond {
		t.Error("the deadline moved with a later packet")
	}
	if g.Expired(g.Deadline()-1) || !g.Expired(g.Deadline()) || g.Deadline() != 0 {
		t.Error("it expires at its deadline, once")
	}
	if !g.Lost(60, 64) {
		t.Error("64 packets overtook")
	}
	g.Lost(70, 1)
	if g.Close(); g.Deadline() != 0 || g.Expired(1<<40) {
		t.Error("a closed gap expires")
	}
}
