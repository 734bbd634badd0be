package cc_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"xroce/roce/cc"
	"xroce/roce/clock"
)

const (
	us = clock.Microsecond
	g  = 1. / 256
)

// params are the published ones.
func params() cc.DCQCNParams { return cc.Config{}.Defaults().DCQCN }

// A step is something that happens to a controller, and what it then does.
type step struct {
	at    clock.Time
	do    string // cnp, timer, or bytes: ten million
	rate  float64
	alpha float64
}

// play compares a controller with a trace.
func play(t *testing.T, d *cc.DCQCN, trace []step) {
	t.Helper()
	for i, s := range trace {
		switch s.do {
		case "cnp":
			if !d.Notified(s.at) {
				t.Errorf("step %d: a CNP means nothing", i)
			}
		case "bytes":
			for range 10_000 {
				d.Sent(s.at, 1000)
			}
		case "timer":
			d.HandleDeadline(s.at - 1)
			if at := d.Deadline(); at != s.at {
				t.Errorf("step %d: the deadline is at %d, not %d", i, at, s.at)
			}
			d.HandleDeadline(s.at)
		}
		if got := float64(d.Rate()); math.Abs(got-s.rate) > 1 {
			t.Errorf("step %d: the rate is %.0f kbit/s, not %.1f", i, got, s.rate)
		}
		if got := d.Alpha(); math.Abs(got-s.alpha) > 1e-9 {
			t.Errorf("step %d: alpha is %.12f, not %.12f", i, got, s.alpha)
		}
	}
}

// TestDCQCNTrace follows the equations of the paper by hand, at 40 Gb/s: two CNPs halve the
// rate, fast recovery halves the distance to the target five times, then the target rises.
func TestDCQCNTrace(t *testing.T) {
	d := cc.NewDCQCN(40_000_000, params())
	if d.Rate() != 0 || d.Deadline() != 0 {
		t.Fatal("a flow without a CNP is limited")
	}
	d.Sent(0, 1<<30)
	a := func(periods float64) float64 { return math.Pow(1-g, periods) }
	play(t, d, []step{
		{0, "cnp", 20_000_000, 1},
		{50 * us, "cnp", 10_000_000, 1},
		{105 * us, "timer", 15_000_000, a(1)}, // (20 + 10) / 2
		{160 * us, "timer", 17_500_000, a(2)},
		{215 * us, "timer", 18_750_000, a(3)},
		{270 * us, "timer", 19_375_000, a(4)},
		{325 * us, "timer", 19_707_500, a(5)}, // the target is 20.04 Gb/s
		{380 * us, "timer", 19_893_750, a(6)}, // 20.08
		// A CNP takes alpha/2 of it: 19.89375 * (1 - 0.99609375^6 / 2).
		{400 * us, "cnp", 19_893_750 * (1 - a(6)/2), (1-g)*a(6) + g},
		// The timers begin anew, and the target is what the rate was.
		{
			455 * us, "timer", (19_893_750 + 19_893_750*(1-a(6)/2)) / 2,
			(1 - g) * ((1-g)*a(6) + g),
		},
	})
}

// TestDCQCNHyperIncrease: bytes raise the rate as time does, and when both have raised it more
// than five times the target rises by 400 Mb/s for each beyond.
func TestDCQCNHyperIncrease(t *testing.T) {
	p := params()
	p.AlphaTimer = clock.Second // out of the way
	d := cc.NewDCQCN(40_000_000, p)
	trace := []step{
		{0, "cnp", 20_000_000, 1},
		{0, "cnp", 10_000_000, 1},
		{0, "cnp", 5_000_000, 1}, // the target is 10 Gb/s
	}
	rate, target := 5e6, 10e6
	rise := func(at clock.Time, do string, by float64) {
		target += by
		rate = (target + rate) / 2
		trace = append(trace, step{at, do, rate, 1})
	}
	for range 4 {
		rise(0, "bytes", 0)
	}
	rise(0, "bytes", 40_000) // the fifth
	rise(0, "bytes", 40_000)
	rise(0, "bytes", 40_000)
	for i := range clock.Time(5) {
		rise((i+1)*55*us, "timer", 40_000) // BC is 7, T is 1 to 5
	}
	rise(6*55*us, "timer", 400_000) // T is 6
	rise(7*55*us, "timer", 800_000) // T is 7
	rise(8*55*us, "timer", 800_000) // BC is 7 still
	play(t, d, trace)
}

// TestDCQCNEnds: the limit ends when the rate is back, and the next CNP begins at line rate.
func TestDCQCNEnds(t *testing.T) {
	d := cc.NewDCQCN(10_000_000, params())
	d.Notified(0)
	for i := 0; d.Rate() != 0; i++ {
		at := d.Deadline()
		if at == 0 || i > 1000 {
			t.Fatalf("the rate stays at %d, deadline %d", d.Rate(), at)
		}
		d.HandleDeadline(at)
	}
	if d.Deadline() != 0 || d.Alpha() != 0 {
		t.Errorf("deadline %d, alpha %v", d.Deadline(), d.Alpha())
	}
	d.Notified(clock.Second)
	if d.Rate() != 5_000_000 {
		t.Errorf("the rate is %d after the first CNP", d.Rate())
	}
}

// TestDCQCNBounds: whatever comes, and when, the rate is between its floor and line rate, and
// a deadline is never over. A flood of CNPs lowers it to the floor, no further.
func TestDCQCNBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		line := rapid.Uint32Range(20_000, 400_000_000).Draw(t, "line")
		d := cc.NewDCQCN(line, params())
		now := clock.Time(0)
		for range 200 {
			now += clock.Time(rapid.Int64Range(0, int64(10*clock.Millisecond)).Draw(t, "wait"))
			switch rapid.IntRange(0, 2).Draw(t, "what") {
			case 0:
				d.Notified(now)
			case 1:
				d.Sent(now, rapid.IntRange(60, 1<<20).Draw(t, "bytes"))
			case 2:
				d.HandleDeadline(now)
				if at := d.Deadline(); at != 0 && at <= now {
					t.Fatalf("deadline %d at %d", at, now)
				}
			}
			if r := d.Rate(); r != 0 && (r < 10_000 || r > line) {
				t.Fatalf("the rate is %d", r)
			}
		}
	})
	d := cc.NewDCQCN(100_000_000, params())
	for range 10_000 {
		d.Notified(1)
	}
	if d.Rate() != 10_000 {
		t.Errorf("after a flood the rate is %d", d.Rate())
	}
}

// TestNotifier: one CNP at once, and one an interval.
func TestNotifier(t *testing.T) {
	var n cc.Notifier
	sent := 0
	for now := clock.Time(0); now < 1000*us; now += us {
		if n.Marked(now, 50*us) {
			sent++
			if now%(50*us) != 0 {
				t.Errorf("a CNP at %d", now)
			}
		}
	}
	if sent != 20 {
		t.Errorf("%d CNPs in 1000 us", sent)
	}
	if !n.Marked(clock.Second, 50*us) || n.Marked(clock.Second+50*us-1, 50*us) {
		t.Error("after a pause")
	}
}
