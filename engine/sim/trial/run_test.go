package trial

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"xroce/engine/sim"
	"xroce/roce"
)

var seedsFlag = flag.String("seeds", "1..200", "seeds of TestSeeds: A..B")

// scripted kinds happen by rule only, and a campaign has none.
var scripted = map[sim.Kind]bool{sim.Scripted: true, sim.ScriptedCorrupted: true}

// expectedErrors are what a campaign is sure to provoke.
var expectedErrors = []roce.Status{
	roce.StatusLocLenErr, roce.StatusLocProtErr, roce.StatusWRFlushErr, roce.StatusRemAccessErr,
	roce.StatusRetryExcErr, roce.StatusRNRRetryExc,
}

// expectedEvents are what a campaign is sure to raise.
var expectedEvents = []roce.Event{roce.EventSRQLimitReached, roce.EventQPLastWQEReached}

// TestSeeds runs a campaign. Every invariant must hold in each seed.
func TestSeeds(t *testing.T) {
	c := Campaign{Workers: runtime.GOMAXPROCS(0), Twice: 16}
	if _, err := fmt.Sscanf(*seedsFlag, "%d..%d", &c.From, &c.To); err != nil || c.To < c.From {
		t.Fatalf("-seeds=%s: want A..B", *seedsFlag)
	}
	shown := 0
	c.Failed = func(r *Result) {
		if shown++; shown > 3 {
			t.Errorf("seed %d: %s", r.Seed, r.Violation)
			return
		}
		t.Error(r)
	}
	sum := RunCampaign(t.Context(), &c)
	if want := c.To - c.From + 1; sum.Seeds != want {
		t.Errorf("%d seeds were run, want %d", sum.Seeds, want)
	}
	s := &sum.Stats
	t.Logf("%d connections, %d messages, %d retransmits, chaos %v, errors %v, ops %v, "+
		"events %v, lost by UC %d", s.Connections, s.Messages, s.Retransmits, s.Chaos, s.Errors,
		s.Ops, s.Events, s.Lost)
	if c.To-c.From < 100 {
		return
	}
	// A campaign in which nothing happens proves nothing.
	for k, n := range s.Network {
		if n == 0 && sim.Kind(k).Fault() && !scripted[sim.Kind(k)] {
			t.Errorf("no frame was ever %s", sim.Kind(k))
		}
	}
	for i, n := range s.Ops {
		if n == 0 {
			t.Errorf("there was never a %s", operations[i].name)
		}
	}
	for _, event := range expectedEvents {
		if s.Events[event] == 0 {
			t.Errorf("there was never an event %s", event)
		}
	}
	if s.Lost == 0 {
		t.Error("no UC ever lost a message")
	}
	for h, n := range s.Chaos {
		if n == 0 {
			t.Errorf("there was never a %s", Havoc(h))
		}
	}
	for _, status := range expectedErrors {
		if s.Errors[status] == 0 {
			t.Errorf("no request ever ended with %s", status)
		}
	}
}

// TestSeedsThatOnceFailed replays the seeds in testdata/seeds.txt.
func TestSeedsThatOnceFailed(t *testing.T) {
	f, err := os.Open("testdata/seeds.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		var seed uint64
		var draws string
		if _, err := fmt.Sscan(line, &seed, &draws); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		o := Options{Plain: draws == "plain", Wide: draws == "wide", Lent: draws == "lent"}
		if r := Run(t.Context(), seed, o); r.Violation != nil {
			t.Errorf("%s\n%s", line, r)
		}
	}
}

// TestSameSeedSameRun holds what makes a failing seed worth printing.
func TestSameSeedSameRun(t *testing.T) {
	a, b := Run(t.Context(), 42, Options{}), Run(t.Context(), 42, Options{})
	if a.Hash != b.Hash || a.Stats != b.Stats {
		t.Errorf("two runs of a seed: %#x and %#x", a.Hash, b.Hash)
	}
	if c := Run(t.Context(), 43, Options{}); c.Hash == a.Hash {
		t.Errorf("two seeds have one hash: %#x", c.Hash)
	}
}

// TestLogHasEverything writes the events of a seed.
func TestLogHasEverything(t *testing.T) {
	var b strings.Builder
	Run(t.Context(), 3, Options{Log: &b})
	for _, want := range []string{"seed 3:", "network", "conn 0", "delivered", "post", "quiet"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}
