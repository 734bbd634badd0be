package congestion_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"xroce/engine/sim/congestion"
	"xroce/roce"
)

// run is Run of a scenario by name, changed for a test.
func run(t *testing.T, name string, seed uint64, change func(s *congestion.Scenario),
) (*congestion.Scenario, *congestion.Result) {
	t.Helper()
	s, ok := congestion.Find(name)
	if !ok {
		t.Fatalf("no scenario %s", name)
	}
	change(&s)
	r, err := congestion.Run(t.Context(), s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return &s, r
}

// shorter ends a scenario after so many milliseconds.
func shorter(ms roce.Time) func(s *congestion.Scenario) {
	return func(s *congestion.Scenario) { s.End = ms * roce.Millisecond }
}

// threeFlows makes it one of three that come and leave.
func threeFlows(s *congestion.Scenario) {
	const ms = roce.Millisecond
	s.Flows = []congestion.Flow{{To: 42 * ms}, {From: 14 * ms}, {From: 28 * ms}}
	s.End = 56 * ms
}

// TestBars: the bottleneck is used, its queue is short, the flows have the same, nothing is
// lost once they have settled. All scenarios as they are: xroce sim --congestion all.
func TestBars(t *testing.T) {
	for _, tt := range []struct {
		name   string
		phases int
		change func(s *congestion.Scenario)
	}{
		{"incast-8-dcqcn-tuned", 1, shorter(16)},
		{"incast-32-dcqcn-tuned-sr", 1, shorter(16)},
		{"incast-8-swift-sr", 1, shorter(13)},
		{"spray-4-window", 1, shorter(11)},
		{"join-leave-dcqcn-tuned", 4, threeFlows},
	} {
		s, r := run(t, tt.name, 1, tt.change)
		if len(r.Phases) != tt.phases {
			t.Errorf("%s: %d phases", s.Name, len(r.Phases))
		}
		for _, p := range r.Phases {
			t.Logf("%s: %d flows: %+v", s.Name, p.Flows, p.Steady)
			if missed := p.Steady.Missed(); len(missed) > 0 {
				t.Errorf("%s: %d flows: %s: %+v", s.Name, p.Flows, missed, p.Steady)
			}
		}
		if unknown := r.Unknown(s); len(unknown) > 0 {
			t.Errorf("%s: %s", s.Name, unknown)
		}
	}
}

// TestBarsCanBeMissed: without congestion control the queue is full and frames are lost.
func TestBarsCanBeMissed(t *testing.T) {
	s, r := run(t, "incast-8-none", 1, shorter(12))
	for _, name := range []string{congestion.BarNameQueue, congestion.BarNameLost} {
		if !slices.Contains(r.Missed(), name) {
			t.Errorf("%s is not missed: %+v", name, r.Phases)
		}
	}
	strict, sprayed := run(t, "spray-4-strict", 1, shorter(11))
	if m := sprayed.Missed(); !slices.Equal(m, []string{congestion.BarNameGoodput}) {
		t.Errorf("%s misses %s", strict.Name, m)
	}
	if r.Marked != 0 || r.Counters["np_cnp_sent"] != 0 || r.Lost == 0 {
		t.Errorf("%d marked, %d lost, %v", r.Marked, r.Lost, r.Counters)
	}
	if unknown := r.Unknown(s); len(unknown) > 0 {
		t.Errorf("unknown: %s", unknown)
	}
	s.Misses = nil
	if len(r.Unknown(s)) < 2 {
		t.Error("what is missed is known")
	}
}

// TestCountersAgree: what the switch marked was seen, answered and heard. The same seed gives
// the same run, another seed another.
func TestCountersAgree(t *testing.T) {
	_, r := run(t, "incast-8-dcqcn", 1, shorter(3))
	c := r.Counters
	if c["np_cnp_sent"] == 0 || c["np_cnp_sent"] < c["rp_cnp_handled"] ||
		c["np_cnp_sent"]-c["rp_cnp_handled"] > 8 || c["rp_cnp_ignored"] != 0 ||
		c["np_ecn_marked_roce_packets"] > r.Marked || c["np_ecn_marked_roce_packets"] == 0 {
		t.Errorf("%d marked, %v", r.Marked, c)
	}
	if len(r.Samples) != 61 {
		t.Errorf("%d samples", len(r.Samples))
	}
	text := func(seed uint64) string {
		_, r := run(t, "incast-8-dcqcn", seed, shorter(3))
		r.Seed = 0
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	first := text(1)
	if first != text(1) {
		t.Error("a seed gives two runs")
	}
	if first == text(2) {
		t.Error("two seeds give one run")
	}
}

// TestScenarios: names are unique, and each says what it is.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, s := range congestion.Scenarios() {
		if names[s.Name] || s.About == "" || s.End == 0 || strings.ContainsAny(s.Name, " _") {
			t.Errorf("%+v", s)
		}
		names[s.Name] = true
		c := s.Config.Defaults()
		if err := c.Check(); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		}
	}
	if _, ok := congestion.Find("incast"); ok {
		t.Error("a scenario that is not there")
	}
}

// TestRunEnds: with its context, and at once when there is nothing to run.
func TestRunEnds(t *testing.T) {
	s, _ := congestion.Find("incast-8-dcqcn")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := congestion.Run(ctx, s, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	for _, bad := range []congestion.Scenario{{}, {End: 1}, {Flows: s.Flows}} {
		if _, err := congestion.Run(t.Context(), bad, 1); err == nil {
			t.Errorf("%+v ran", bad)
		}
	}
}
