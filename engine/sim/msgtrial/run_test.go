package msgtrial

import (
	"bytes"
	"flag"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"xroce/engine/sim"
	"xroce/roce/msg"
)

var seedsFlag = flag.String("seeds", "1..100", "seeds of TestSeeds: A..B")

// TestPlain runs seeds in which nothing goes wrong: no message may fail.
func TestPlain(t *testing.T) {
	for seed := range uint64(50) {
		r := Run(t.Context(), seed, Options{Plain: true})
		if r.Violation != nil {
			t.Fatal(r)
		}
		if s := &r.Stats; s.Failed != 0 || s.Messages != s.Received || s.Messages == 0 {
			t.Errorf("seed %d: %d messages sent, %d received, %d failed", seed, s.Messages,
				s.Received, s.Failed)
		}
	}
}

// TestQuotaIsAReason: in each of these seeds the slots of a peer are longer than was wanted, and
// beyond what there is memory for, which ends a connection. In the last one a message is posted
// while the peer is being told.
func TestQuotaIsAReason(t *testing.T) {
	for _, seed := range []uint64{100054, 101905, 597} {
		if r := Run(t.Context(), seed, Options{}); r.Violation != nil {
			t.Error(r)
		}
	}
}

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
	t.Logf("%+v", sum.Stats)
	if c.To-c.From >= 99 {
		checkVariety(t, &sum.Stats)
	}
}

// checkVariety wants a campaign in which all happened that there is: else it proves nothing.
func checkVariety(t *testing.T, s *Stats) {
	t.Helper()
	for p := msg.Eager; p <= msg.Fragments; p++ {
		if s.Protocols[p] == 0 {
			t.Errorf("no message went by %v", p)
		}
	}
	for h, n := range s.Chaos {
		if n == 0 {
			t.Errorf("there was never a %s", Havoc(h))
		}
	}
	for _, k := range []sim.Kind{
		sim.Dropped, sim.Duplicated, sim.Reordered, sim.Corrupted, sim.Staled, sim.Blocked,
	} {
		if s.Network[k] == 0 {
			t.Errorf("no frame was ever %s", k)
		}
	}
	if s.RailsLost == 0 || s.Resumed == 0 || s.SentAgain == 0 || s.ChunksAgain == 0 {
		t.Errorf("%d rails lost, %d changes, %d items and %d parts again", s.RailsLost, s.Resumed,
			s.SentAgain, s.ChunksAgain)
	}
	if s.Failed == 0 || s.Refused == 0 {
		t.Errorf("%d messages failed, %d requests for memory were refused", s.Failed, s.Refused)
	}
}

// TestSameSeedSameRun holds what makes a failing seed worth printing.
func TestSameSeedSameRun(t *testing.T) {
	lost := uint64(0)
	for _, seed := range []uint64{42, 130, 574} { // the last two have rails
		a, b := Run(t.Context(), seed, Options{}), Run(t.Context(), seed, Options{})
		if a.Hash != b.Hash || a.Stats != b.Stats {
			t.Errorf("two runs of a seed: %#x and %#x", a.Hash, b.Hash)
		}
		if c := Run(t.Context(), seed+1, Options{}); c.Hash == a.Hash {
			t.Errorf("two seeds have one hash: %#x", c.Hash)
		}
		lost += a.Stats.RailsLost
	}
	if lost == 0 {
		t.Error("no rail was lost")
	}
}

// TestLogHasEverything writes the events of a seed.
func TestLogHasEverything(t *testing.T) {
	var b bytes.Buffer
	Run(t.Context(), 3, Options{Log: &b})
	for _, want := range []string{
		"seed 3:", "network", "pair 0", "delivered", "sends", "hears ADVERT", "quiet", "is back",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the log has no %q", want)
		}
	}
}
