package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
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
	t.Parallel()
	text := bench{machine: goodMachine()}.run(t, "sim", "--messages", "--seeds", "1..20")
	if text.code != exitOK {
		t.Fatalf("exit code %d\n%s\n%s", text.code, text.stdout, text.stderr)
	}
	for _, want := range []string{
		`(?m)^packets +[1-9]`, `(?m)^faults .*dropped [1-9]`,
		`(?m)^protocols .*eager [1-9].*put [1-9]`, `(?m)^rails +[1-9]\d*, [1-9]\d* lost; `,
		`(?m)^time .* seeds/s$`, `(?m)^sim: 20 seeds, 0 failed\n\z`,
	} {
		if !regexp.MustCompile(want).MatchString(text.stdout) {
			t.Errorf("no %s in\n%s", want, text.stdout)
		}
	}
	if raceDetector {
		return // it saw these seeds
	}
	data := bench{machine: goodMachine()}.run(t, "sim", "--messages", "--seeds", "1..20", "--json")
	var r simMessagesReport
	if err := json.Unmarshal([]byte(data.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Seeds != 20 || len(r.Failed) != 0 || r.Received == 0 || r.Protocols["frag"] == 0 ||
		r.RailsLost == 0 || r.Virtual <= 0 {
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

// TestSimTellsHowToReplay reports a campaign in which seeds failed.
func TestSimTellsHowToReplay(t *testing.T) {
	var out, logs strings.Builder
	a := newApp(&out, &logs)
	bad := func(seed uint64) *trial.Result {
		return &trial.Result{
			Seed: seed, Config: "a configuration\n", Last: []string{"an event"},
			Replay:    "xroce sim --seeds 17 --verbose",
			Violation: &trial.Violation{Invariant: trial.Memory, What: "a byte"},
		}
	}
	totals, stats, err := runSim(t.Context(), a, &trial.Campaign{From: 1, To: 20},
		func(_ context.Context, c *trial.Campaign) *trial.Summary {
			for seed := uint64(17); seed <= 20; seed++ {
				c.Failed(bad(seed))
			}
			return &trial.Summary{Seeds: 20, Stats: trial.Stats{Messages: 5}}
		})
	if err != nil || stats.Messages != 5 || totals.Seeds != 20 {
		t.Fatalf("%+v, %+v, %v", totals, stats, err)
	}
	want := simFailure{
		Seed: 17, Invariant: "I2 memory", What: "a byte", Config: "a configuration\n",
		Last: []string{"an event"}, Replay: "xroce sim --seeds 17 --verbose",
	}
	if got := totals.Failed[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
	err = a.reportSim(&totals, &totals, func() { a.printf("the totals\n") })
	if code := exitCode(t.Context(), err, true); code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	text := out.String()
	if strings.Count(text, "replay: ") != maxShown || !strings.Contains(text, "seeds 20\n") ||
		!strings.HasSuffix(text, "sim: 20 seeds, 4 failed\n") {
		t.Errorf("%s", text)
	}
}

// TestSimThatIsInterrupted reports nothing of a campaign that did not come to its end.
func TestSimThatIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var out, logs strings.Builder
	_, _, err := runSim(ctx, newApp(&out, &logs), &trial.Campaign{From: 1, To: 20},
		func(context.Context, *trial.Campaign) *trial.Summary {
			cancel()
			return &trial.Summary{Seeds: 19}
		})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
}

// TestSimCongestion runs a scenario and reads both forms of the report, and the picture.
func TestSimCongestion(t *testing.T) {
	t.Parallel()
	if raceDetector {
		t.Skip("a scenario is computed by one goroutine: the race detector has nothing to see")
	}
	list := bench{machine: goodMachine()}.run(t, "sim", "--congestion", "list")
	if list.code != exitOK || !strings.Contains(list.stdout, "incast-32-dcqcn ") {
		t.Errorf("exit code %d\n%s", list.code, list.stdout)
	}
	svg := filepath.Join(t.TempDir(), "rates.svg")
	text := bench{machine: goodMachine()}.run(t, "sim", "--congestion", "incast-8-dcqcn-tuned",
		"--svg", svg)
	for _, want := range []string{
		`(?m)^incast-8-dcqcn-tuned: .*; seed 1$`, `(?m)^  0..30 +8 +0\.9|(?m)^  0..30 +8 +1\.0`,
		`(?m)np_cnp_sent [1-9]`, `(?m)rp_cnp_handled [1-9]`, `(?m)^sim: 1 runs, 0 failed\n\z`,
	} {
		if !regexp.MustCompile(want).MatchString(text.stdout) {
			t.Errorf("no %s in\n%s", want, text.stdout)
		}
	}
	if picture, err := os.ReadFile(svg); err != nil || !bytes.Contains(picture, []byte("<svg")) {
		t.Errorf("the picture has %d bytes, %v", len(picture), err)
	}
	data := bench{machine: goodMachine()}.run(t, "sim", "--congestion", "incast-8-dcqcn", "--json",
		"--seeds", "3")
	var r simCongestionReport
	if err := json.Unmarshal([]byte(data.stdout), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Runs) != 1 || r.Runs[0].Seed != 3 || len(r.Runs[0].Samples) == 0 || r.Failed != 0 ||
		r.Runs[0].Phases[0].Steady.Use < 0.9 {
		t.Errorf("%d runs, %d failed", len(r.Runs), r.Failed)
	}
	for _, args := range [][]string{
		{"--congestion", "x"},
		{"--svg", "x"},
		{"--congestion", "all", "--svg", "x"},
		{"--congestion", "incast-8-dcqcn", "--messages"},
	} {
		i := bench{machine: goodMachine()}.run(t, append([]string{"sim"}, args...)...)
		if i.code != exitUsage {
			t.Errorf("%q: exit code %d, stderr %s", args, i.code, i.stderr)
		}
	}
}

// TestCongestionFlag: each value is a configuration that a device takes, others are refused.
func TestCongestionFlag(t *testing.T) {
	for name, c := range congestionNames {
		if c == nil {
			continue
		}
		whole := c.Defaults()
		if err := whole.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	i := bench{machine: goodMachine()}.run(t, "perf", "send-bw", "-d", "xr0", "--congestion", "x")
	if i.code != exitUsage || !strings.Contains(i.stderr, "dcqcn") {
		t.Errorf("exit code %d, stderr %s", i.code, i.stderr)
	}
}
