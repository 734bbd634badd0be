package perf

import (
	"cmp"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"xroce/engine/sim"
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
		resumed bool          // one came behind the window
		blind   time.Duration // nobody looked before the end of the window
		over    bool          // the conversation
		none    bool          // there is nothing that counts
	}{
		{name: "until the end", counted: 1e6},
		{name: "until after the end", counted: 1e6, resumed: true},
		{name: "less than a part of the time", counted: 1e6, silent: window/4 - 1},
		{name: "for a part of the time", counted: 1e6, silent: window / 4, over: true},
		{name: "for half of the time", counted: 1e6, silent: window / 2, over: true},
		{name: "a short time", window: 3 * hiccup, counted: 1e6, silent: hiccup - 1},
		{name: "more of that", window: 3 * hiccup, counted: 1e6, silent: hiccup, over: true},
		{name: "half of no time", window: hiccup, counted: 1e6, silent: hiccup / 2, over: true},
		{
			name: "a peer that goes on behind the time", counted: 1e6, silent: window / 4,
			resumed: true, over: true,
		},
		{name: "not scheduled at the end", counted: 1e6, silent: window / 2, blind: window/4 + 1},
		{
			name: "nor the peer before", counted: 1e6, silent: window / 2, blind: window / 4,
			over: true,
		},
		{name: "long round trips", counted: 4, silent: 33 * time.Second},
		{name: "two of those", counted: 4, silent: 34 * time.Second, over: true},
		{name: "one round trip", counted: 1, silent: window/2 - 1},
		{name: "one round trip, and half of the time", counted: 1, silent: window / 2, over: true},
		{name: "a gap", counted: 4, gap: window / 5, silent: window*2/5 - 1},
		{name: "two gaps", counted: 4, gap: window / 5, silent: window * 2 / 5, over: true},
		{name: "nothing", silent: window, over: true},
		{name: "one behind the time", silent: window, resumed: true, none: true},
	} {
		long := cmp.Or(tt.window, window)
		for _, of := range []struct {
			verb Verb
			typ  roce.QPType
			want error
		}{
			{Send, roce.TypeRC, errThrough},
			{Send, roce.TypeUC, errLost},
			{Send, roce.TypeUD, errLost},
			{Read, roce.TypeRC, errUnanswered},
			{Atomic, roce.TypeRC, errUnanswered},
		} {
			want := of.want
			if tt.none {
				want = errNoTrip
			} else if !tt.over {
				want = nil
			}
			c := brief(Test{of.verb, true})
			c.Type, c.Duration, c.Gap = of.typ, long, tt.gap
			to := int64(from + long)
			tm := newTimer(&c)
			tm.from, tm.to, tm.looked = int64(from), to, to-int64(tt.blind)
			sample := trips{counted: tt.counted, came: to - int64(tt.silent)}
			if tt.counted > 0 {
				sample.last = sample.came
			}
			if tt.resumed {
				sample.came = to + int64(time.Second)
			}
			if err := verdict(&c, tm, sample); !errors.Is(err, want) ||
				(err == nil) != (want == nil) {
				t.Errorf("%s, %s over %s: %v, want %v", tt.name, c.Test.Name(), of.typ, err, want)
			}
		}
	}
}

// verdict is what the loop of a test has come to with a sample of its time.
func verdict(c *Config, tm timer, sample trips) error {
	e := &end{cfg: c, flows: make([]flow, 1)}
	if c.Test.Answered() {
		r := newRoundtrip(e, nil)
		r.timer, r.sample = tm, sample
		return r.verdict()
	}
	p := newPingpong(e, c.Size, nil)
	p.timer, p.sample = tm, sample
	return p.verdict()
}

// TestLatencyByTimeUnanswered: a READ or an atomic whose answer stays away is waited for until the
// time is over. What was measured before is no result of that time, also when the peer goes on
// behind the time that counts.
func TestLatencyByTimeUnanswered(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, verb := range []Verb{Read, Atomic} {
		for _, resumed := range []bool{false, true} {
			t.Run(fmt.Sprint(Test{verb, true}.Name(), " resumed ", resumed), func(t *testing.T) {
				t.Parallel() // it waits most of the time
				testUnanswered(t, verb, resumed)
			})
		}
	}
}

func testUnanswered(t *testing.T, verb Verb, resumed bool) {
	const margin = time.Second
	window := timeout.Scaled(4 * time.Second)
	c := brief(Test{verb, true})
	c.Timeout = 25 // it is sent again after all of that
	c.Margin, c.Duration = margin, window+2*margin
	p := newPair(t, c)
	faults := func(f sim.Faults) func() {
		return sync.OnceFunc(func() {
			if err := p.network.SetFaults(f); err != nil {
				t.Error(err)
			}
		})
	}
	stop, goOn := faults(sim.Faults{Delay: roce.Time(time.Hour)}), faults(sim.Faults{})
	p.ends[0].Progress = func(seconds, _ int64) {
		now := time.Duration(seconds) * time.Second
		if now >= margin+time.Second {
			stop()
		}
		if resumed && now >= margin+window+time.Second {
			goOn()
		}
	}
	errs := p.run(t)
	if len(p.records[0].Rows) > 0 || !errors.Is(errs[0], errUnanswered) {
		t.Errorf("client %v, result %+v", errs[0], p.records[0].Rows)
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
