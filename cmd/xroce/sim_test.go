package main

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"xroce/engine/sim/trial"
)

// TestSimReportsACampaign runs a few seeds and reads both forms of the report.
func TestSimReportsACampaign(t *testing.T) {
	text := bench{machine: goodMachine()}.run(t, "sim", "--seeds", "1..12")
	if text.code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", text.code, text.stdout, text.stderr)
	}
	for _, want := range []string{
		`(?m)^packets +[1-9]`, `(?m)^faults .*dropped [1-9]`,
		`(?m)^operations .*FETCH_ADD [1-9].*SEND [1-9]`,
		`(?m)^events .*SRQ`, `(?m)^virtual time +[0-9.]+ s$`,
		`(?m)^time .* seeds/s$`, `(?m)^sim: 12 seeds, 0 failed\n\z`,
	} {
		if !regexp.MustCompile(want).MatchString(text.stdout) {
			t.Errorf("no %s in\n%s", want, text.stdout)
		}
	}
	data := bench{machine: goodMachine()}.run(t, "sim", "--seeds", "1..12", "--json",
		"--workers", "1")
	var r simReport
	if err := json.Unmarshal([]byte(data.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Seeds != 12 || len(r.Failed) != 0 || r.Packets == 0 || r.Faults["dropped"] == 0 ||
		r.Operations["CMP_SWP"] == 0 ||
		r.Virtual <= 0 {
		t.Errorf("report %+v", r)
	}
}

// TestSimMessages runs a few seeds of messages and reads both forms of the report.
func TestSimMessages(t *testing.T) {
	text := bench{machine: goodMachine()}.run(t, "sim", "--messages", "--seeds", "1..20")
	if text.code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", text.code, text.stdout, text.stderr)
	}
	for _, want := range []string{
		`(?m)^packets +[1-9]`, `(?m)^faults .*dropped [1-9]`,
		`(?m)^protocols .*eager [1-9].*put [1-9]`,
		`(?m)^time .* seeds/s$`, `(?m)^sim: 20 seeds, 0 failed\n\z`,
	} {
		if !regexp.MustCompile(want).MatchString(text.stdout) {
			t.Errorf("no %s in\n%s", want, text.stdout)
		}
	}
	data := bench{machine: goodMachine()}.run(t, "sim", "--messages", "--seeds", "1..20", "--json")
	var r simMessagesReport
	if err := json.Unmarshal([]byte(data.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Seeds != 20 || len(r.Failed) != 0 || r.Received == 0 || r.Protocols["frag"] == 0 ||
		r.Virtual <= 0 {
		t.Errorf("report %+v", r)
	}
	i := bench{machine: goodMachine()}.run(t, "sim", "--messages", "--seeds", "3", "--verbose")
	for _, want := range []string{"seed 3:", "delivered RC_", "sim: 1 seeds, 0 failed"} {
		if i.code != exitOK || !strings.Contains(i.stdout, want) {
			t.Errorf("exit code %d, no %q", i.code, want)
		}
	}
}

func TestSimShowsEveryEvent(t *testing.T) {
	i := bench{machine: goodMachine()}.run(t, "sim", "--seeds", "3", "--verbose")
	for _, want := range []string{"seed 3:", "delivered RC_", "sim: 1 seeds, 0 failed"} {
		if i.code != exitOK || !strings.Contains(i.stdout, want) {
			t.Errorf("exit code %d, no %q", i.code, want)
		}
	}
}

func TestSimRefuses(t *testing.T) {
	for _, args := range [][]string{
		{"--seeds", "x"}, {"--seeds", "9..1"}, {"--seeds", "1.."}, {"--workers", "0"}, {"1"},
	} {
		i := bench{machine: goodMachine()}.run(t, append([]string{"sim"}, args...)...)
		if i.code != exitUsage {
			t.Errorf("%q: exit code %d, stderr %s", args, i.code, i.stderr)
		}
	}
}

// TestSimTellsHowToReplay reports a seed that failed.
func TestSimTellsHowToReplay(t *testing.T) {
	r := &simReport{}
	r.fail(&trial.Result{
		Seed: 17, Config: "a configuration", Last: []string{"an event"},
		Violation: &trial.Violation{Invariant: trial.Memory, What: "a byte"},
	})
	r.total(&trial.Summary{Seeds: 20, Failed: []uint64{17}}, 0)
	want := simFailure{
		Seed: 17, Invariant: "I2 memory", What: "a byte", Config: "a configuration",
		Replay: "xroce sim --seeds 17 --verbose",
	}
	got := r.Failed[0]
	if got.Last = nil; got.Seed != want.Seed || got.Invariant != want.Invariant ||
		got.Replay != want.Replay || got.What != want.What || got.Config != want.Config {
		t.Errorf("%+v, want %+v", got, want)
	}
	if code := exitCode(t.Context(), r.verdict(), true); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	var out strings.Builder
	a := newApp(&out, &out)
	a.printSim(r)
	if !strings.HasSuffix(out.String(), "sim: 20 seeds, 1 failed\n") {
		t.Errorf("%s", out.String())
	}
}
