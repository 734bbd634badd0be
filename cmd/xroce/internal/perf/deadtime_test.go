package perf

import (
	"cmp"
	"errors"
	"testing"
	"time"

	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// TestLatencyByTimeVerdict: a latency test by time has a result when messages came until its time
// was over, and says what is wrong otherwise: over each service.
func TestLatencyByTimeVerdict(t *testing.T) {
	const from, window = 2 * time.Second, 100 * time.Second
	for _, tt := range []struct {
		name    string
		window  time.Duration // 0 for that above
		counted uint64
		silent  time.Duration // before the end of the window
		gap     time.Duration
		late    time.Duration // the end of the window is noticed
		over    bool          // the conversation
		none    bool          // there is nothing that counts
	}{
		{name: "until the end", counted: 1e6},
		{name: "until after the end", counted: 1e6, silent: -time.Second},
		{name: "less than a part of the time", counted: 1e6, silent: window/4 - 1},
		{name: "for a part of the time", counted: 1e6, silent: window / 4, over: true},
		{name: "for half of the time", counted: 1e6, silent: window / 2, over: true},
		{name: "a short time", window: 3 * hiccup, counted: 1e6, silent: hiccup - 1},
		{name: "more of that", window: 3 * hiccup, counted: 1e6, silent: hiccup, over: true},
		{name: "half of no time", window: hiccup, counted: 1e6, silent: hiccup / 2, over: true},
		{name: "not scheduled behind the time", counted: 1e6, silent: window/4 - 1, late: window},
		{name: "long round trips", counted: 4, silent: 33 * time.Second},
		{name: "two of those", counted: 4, silent: 34 * time.Second, over: true},
		{name: "one round trip", counted: 1, silent: window/2 - 1},
		{name: "one round trip, and half of the time", counted: 1, silent: window / 2, over: true},
		{name: "a gap", counted: 4, gap: window / 5, silent: window*2/5 - 1},
		{name: "two gaps", counted: 4, gap: window / 5, silent: window * 2 / 5, over: true},
		{name: "nothing", silent: window, over: true},
		{name: "one behind the time", silent: -time.Second, none: true},
	} {
		long := cmp.Or(tt.window, window)
		for typ, want := range map[roce.QPType]error{
			roce.TypeRC: errThrough, roce.TypeUC: errLost, roce.TypeUD: errLost,
		} {
			if tt.none {
				want = errNoTrip
			} else if !tt.over {
				want = nil
			}
			c := brief(Test{Send, true})
			c.Type, c.Duration, c.Gap = typ, long, tt.gap
			p := newPingpong(&end{cfg: &c}, 64, nil)
			p.from, p.to = int64(from), int64(from+long)
			p.came = p.to - int64(tt.silent)
			p.sample = trips{tt.counted, min(p.came, p.to)}
			p.to += int64(tt.late)
			if err := p.verdict(); !errors.Is(err, want) || (err == nil) != (want == nil) {
				t.Errorf("%s, %s: %v, want %v", tt.name, typ, err, want)
			}
		}
	}
}

// TestLatencyByTimeEndsWithAnswers: the time in which nothing came any more is no part of a
// latency, nor is what comes before the first message.
func TestLatencyByTimeEndsWithAnswers(t *testing.T) {
	c := brief(Test{Send, true})
	c.Duration = 10 * time.Second
	p := newPingpong(&end{cfg: &c}, 64, func(uint64) {})
	at := func(d time.Duration) { p.zero = time.Now().Add(-d) }
	at(time.Hour) // the peer was late
	p.arrived()
	for n := range 10 {
		at(time.Hour + time.Duration(n+1)*time.Minute/100) // each 0.6 s
		p.arrived()
		p.tick(p.now())
	}
	at(time.Hour + 2*c.Duration)
	p.tick(p.now())
	if !p.over() || p.sample.counted != 10 {
		t.Fatalf("over %t, %d round trips", p.over(), p.sample.counted)
	}
	var row Row
	row.setLatency(&c, &p.timer, &p.sample, p.at, 2)
	// A test that is not scheduled shifts one end of that or the other.
	if half := 300_000.0; row.Iters != 10 || row.Average < half/2 || row.Average > half*1.5 {
		t.Errorf("%d round trips, half of one takes %.0f us", row.Iters, row.Average)
	}
}

// TestLatencyByTimeOfPeerWithLess: who has more time than its peer has no latency of all of it.
func TestLatencyByTimeOfPeerWithLess(t *testing.T) {
	for _, verb := range []Verb{Send, Write} {
		t.Run(Test{verb, true}.Name(), func(t *testing.T) {
			t.Parallel()
			// A peer that was not scheduled at its own end has no result either, and gets more.
			for d := 2 * time.Second; ; d *= 2 {
				c := brief(Test{verb, true})
				c.Size = 64
				p := newPair(t, c)
				for i, d := range []time.Duration{d + 4*time.Second, d} {
					p.ends[i].Duration, p.ends[i].asTool = d, true
				}
				errs := p.run(t)
				if len(p.records[0].Rows) > 0 {
					t.Fatalf("a result: %+v", p.records[0].Rows)
				}
				if errors.Is(errs[0], errThrough) {
					return
				}
				if !errors.Is(errs[1], errThrough) && !errors.Is(errs[1], errNoTrip) ||
					d > timeout.Scaled(10*time.Second) {
					t.Fatalf("client %v, server %v", errs[0], errs[1])
				}
			}
		})
	}
}
