package perf

import (
	"math"
	"strings"
	"testing"
	"time"
)

func TestTimer(t *testing.T) {
	c := Config{Duration: 10 * time.Second, Margin: 2 * time.Second}
	tm := newTimer(&c)
	for _, step := range []struct {
		at           time.Duration
		counts, over bool
	}{
		{0, false, false},
		{1999 * time.Millisecond, false, false},
		{2 * time.Second, true, false},
		{7 * time.Second, true, false},
		{8 * time.Second, false, false},
		{9 * time.Second, false, false},
		{10 * time.Second, false, true},
	} {
		tm.start(int64(step.at))
		tm.tick(int64(step.at))
		if tm.counts() != step.counts || tm.over() != step.over {
			t.Errorf("at %s: counts %v, over %v", step.at, tm.counts(), tm.over())
		}
	}
	if tm.to-tm.from != int64(6*time.Second) {
		t.Errorf("the sample was %s", time.Duration(tm.to-tm.from))
	}
}

func TestTimerOfIterations(t *testing.T) {
	var tm timer
	tm.start(5)
	tm.tick(1 << 60)
	if tm.over() || tm.counts() || tm.state != phaseIdle {
		t.Errorf("%+v", tm)
	}
}

func TestPacer(t *testing.T) {
	p := pacer{gap: 100, burst: 3}
	sent := 0
	for now := int64(0); now < 1000; now++ {
		for p.open(now) {
			p.sent(1)
			sent++
			if sent > 40 {
				t.Fatal("no bound")
			}
		}
	}
	if sent != 30 {
		t.Errorf("%d messages in ten gaps of three", sent)
	}
}

func TestRates(t *testing.T) {
	for _, c := range []struct {
		r    Rate
		want time.Duration
	}{
		{Rate{Value: 8, Units: 'g'}, time.Microsecond * 10}, // 10 messages of 1000 bytes
		{Rate{Value: 1000, Units: 'p'}, 10 * time.Millisecond},
		{Rate{Value: 1000.0 / (1 << 20), Units: 'M'}, 10 * time.Second},
		{Rate{}, 0},
		{Rate{Value: 8, Units: 'g', Paced: true}, 0},
		{Rate{Value: 1e-12, Units: 'p'}, maxGap}, // not a gap of less than nothing
		{Rate{Value: math.SmallestNonzeroFloat64, Units: 'M'}, maxGap},
	} {
		if got := c.r.gap(1000, 10); got != c.want {
			t.Errorf("%+v: %s, not %s", c.r, got, c.want)
		}
	}
	if got := (Rate{Value: 8, Units: 'g', Paced: true}).kbits(4); got != 2000000 {
		t.Errorf("%d kbit/s", got)
	}
}

func TestCPUUtil(t *testing.T) {
	if got := cpuUtil([2]cpuTimes{{100, 1000}, {150, 1150}}); got != 25 {
		t.Errorf("%v %%", got)
	}
	if got := cpuUtil([2]cpuTimes{}); got != 0 {
		t.Errorf("%v %%", got)
	}
}

// TestWhoHasCPUUtil: an end that only answers measures nothing, and tells of no load.
func TestWhoHasCPUUtil(t *testing.T) {
	for _, dial := range []bool{false, true} {
		c := brief(Test{Verb: Write})
		c.Duration, c.CPUUtil, c.Dial = time.Second, true, dial
		var out strings.Builder
		i := &Info{Config: c}
		Text{W: &out}.Begins(i)
		Text{W: &out}.Row(i, &Row{CPUUtil: 12.5})
		b, ok := i.result(&Row{CPUUtil: 12.5}).(BandwidthJSON)
		if !ok || strings.Contains(out.String(), "CPU_Util") != dial ||
			strings.Contains(out.String(), "12.50") != dial || (b.CPUUtil != nil) != dial {
			t.Errorf("dials %t: %+v and %q", dial, b, out.String())
		}
	}
}

// TestLinger: an end stays as long as its peer waits for the acknowledgement of its last message,
// within bounds.
func TestLinger(t *testing.T) {
	for code, want := range map[uint8]time.Duration{
		0: 150 * time.Millisecond, 16: 603979776, 18: time.Second, 31: time.Second,
	} {
		if got := lingerTime(code); got != want {
			t.Errorf("-u %d: %s, not %s", code, got, want)
		}
	}
}

// TestBurstOfLists: a burst is whole lists of work requests, or more went in a gap than is for it.
func TestBurstOfLists(t *testing.T) {
	for _, x := range []struct{ burst, depth, list, want int }{
		{0, 128, 0, 128},
		{0, 128, 1, 128},
		{1, 128, 64, 64},
		{0, 128, 100, 200},
		{65, 128, 64, 128},
	} {
		c := Config{TxDepth: x.depth, PostList: x.list, Rate: Rate{Burst: x.burst}}
		if got := c.burst(); got != x.want {
			t.Errorf("%+v: %d at a time", x, got)
		}
	}
}
