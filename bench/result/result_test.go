package result

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"xroce/bench/machine"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// sample is a case of three rounds: in the second the peer lost packets, in the
// third the control moved.
func sample() Case {
	c := Case{
		Name: "raw-rx-64", Title: "receive 64-byte frames", Unit: "packets/s",
		Lossless: true, Control: "C", Variants: []string{"ours", "C", "other"},
		Skipped:  []Skip{{"asavie/xdp", "no multi-buffer"}},
		Settings: stage.Settings{Driver: "veth", MTU: 1500, Qdisc: "pfifo", NAPI: "threaded"},
		Sockets:  Sockets{Frame: 64, RxFrames: 8192},
	}
	for round, values := range [][]float64{
		{1.1e6, 1e6, 2.2e6}, {1.0e6, 1e6, 0.5e6}, {1.2e6, 0.5e6, 1.2e6}, {0.9e6, 1e6, 0.9e6},
	} {
		for i, v := range values {
			c.Rows = append(c.Rows, Row{
				Round: round, Variant: c.Variants[i], Value: v, Load: 0.1,
				Workers: []worker.Report{{Packets: 5, Counters: map[string]uint64{"tx_busy": 1}}},
			})
		}
	}
	c.Rows[4].Loss = 0.02
	return c
}

func document() *Document {
	d := New(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
		machine.Facts{
			Kernel: "6.18.0", CPU: "Fast 9000", CPUs: 2, Go: "go1.26", Arch: "amd64",
			Commit: "abc",
		}, 0.25)
	d.Window, d.Pairs = 2, 4
	c := sample()
	c.Judge()
	d.Cases = append(d.Cases, c)
	return d
}

func TestJudge(t *testing.T) {
	c := sample()
	c.Judge()
	want := map[int]string{
		4: "lost 2 %",
		6: "the control moved 50 %", 7: "the control moved 50 %", 8: "the control moved 50 %",
	}
	for i, r := range c.Rows {
		if r.Void != want[i] {
			t.Errorf("row %d (round %d, %s) is void for %q, want %q",
				i, r.Round, r.Variant, r.Void, want[i])
		}
	}
	lossy := sample()
	lossy.Lossless = false
	lossy.Judge()
	if lossy.Rows[4].Void != "" {
		t.Errorf("void for %q where loss is expected", lossy.Rows[4].Void)
	}
}

func TestJudgeKeepsAnEarlierReason(t *testing.T) {
	c := sample()
	c.Rows[6].Void = "it broke"
	c.Judge()
	if c.Rows[6].Void != "it broke" {
		t.Errorf("void for %q, want the first reason", c.Rows[6].Void)
	}
}

func TestCompare(t *testing.T) {
	c := sample()
	c.Judge()
	got := c.Compare()
	if len(got) != 2 || got[0].Peer != "C" || got[1].Peer != "other" {
		t.Fatalf("compared with %+v, want C and other", got)
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-9 {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	near("rounds against C", float64(got[0].Ratio.N), 2) // 1.1 and 0.9 count
	near("void against C", float64(got[0].Void), 2)
	near("median against C", got[0].Ratio.Median, 1.0)
	near("lower quartile against C", got[0].Ratio.Q1, 0.95)
	near("rounds against the other", float64(got[1].Ratio.N), 3) // 0.5, 2 and 1
	near("median against the other", got[1].Ratio.Median, 1.0)
	near("our median in them", got[1].Ours.Median, 1.0e6)
}

func TestCompareNeedsBoth(t *testing.T) {
	c := Case{Variants: []string{"ours", "C"}, Rows: []Row{
		{Round: 0, Variant: "ours", Value: 1},
		{Round: 1, Variant: "C", Value: 1},
		{Round: 2, Variant: "ours", Value: 1},
		{Round: 2, Variant: "C", Value: 0},
	}}
	got := c.Compare()
	if len(got) != 1 || got[0].Ratio.N != 0 || got[0].Void != 3 {
		t.Errorf("%+v, want three void rounds and no ratio", got)
	}
	if (&Case{}).Compare() != nil {
		t.Error("a case that did not run was compared")
	}
}

func TestCompareWithAReference(t *testing.T) {
	c := Case{Variants: []string{"one", "two", "base"}, Reference: "base", Rows: []Row{
		{Variant: "one", Value: 2}, {Variant: "two", Value: 8}, {Variant: "base", Value: 4},
	}}
	got := c.Compare()
	if len(got) != 2 {
		t.Fatalf("%d comparisons, want 2", len(got))
	}
	for i, want := range []float64{0.5, 2} {
		if got[i].Variant != c.Variants[i] || got[i].Peer != "base" ||
			got[i].Ratio.Median != want {
			t.Errorf("%+v, want %s to be %v of the base", got[i], c.Variants[i], want)
		}
	}
}

func TestDocumentRoundTrip(t *testing.T) {
	want := document()
	dir := filepath.Join(t.TempDir(), "results")
	name, err := want.Save(dir)
	if err != nil {
		t.Fatal(err)
	}
	if base := filepath.Base(name); base != "20300102-030405-abc.json" {
		t.Errorf("saved as %s", base)
	}
	got, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestLoadRefuses(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"version.json": `{"version": 99}`, "broken.json": `{`,
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if d, err := Load(file); err == nil {
			t.Errorf("Load(%s) = %+v, want an error", name, d)
		}
	}
	if _, err := Load(filepath.Join(dir, "none.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Load of no file: %v", err)
	}
}

func TestTables(t *testing.T) {
	d := document()
	var text, md strings.Builder
	if err := d.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := d.WriteMarkdown(&md); err != nil {
		t.Fatal(err)
	}
	row := "| raw-rx-64 | receive 64-byte frames"
	wantMD := "| case | what | variant | against | ratio | quartiles | pairs | stage |\n" +
		"|---|---|---|---|---|---|---|---|\n" +
		row + ", packets/s | ours | C | 1.00 | 0.95 … 1.05 | 2 (2 void) | pfifo, NAPI thread |\n" +
		row + ", packets/s | ours | other | 1.00 | 0.75 … 1.50 | 3 (1 void) | " +
		"pfifo, NAPI thread |\n" +
		row + " | asavie/xdp | – | – | – | skipped: no multi-buffer | – |\n"
	if got, _, _ := strings.Cut(md.String(), "\n\n"); got+"\n" != wantMD {
		t.Errorf("Markdown (-want +got):\n%s", cmp.Diff(wantMD, got+"\n"))
	}
	for what, out := range map[string]string{"text": text.String(), "Markdown": md.String()} {
		for _, fact := range []string{
			"Linux 6.18.0", "Fast 9000", "commit abc", "veth", "copy mode", "not the numbers",
			"load average 0.25", "no multi-buffer",
		} {
			if !strings.Contains(out, fact) {
				t.Errorf("%s does not say %q:\n%s", what, fact, out)
			}
		}
		if strings.Contains(out, "QUICK") {
			t.Errorf("%s calls a full run quick", what)
		}
	}
	d.Quick = true
	text.Reset()
	if err := d.WriteText(&text); err != nil || !strings.Contains(text.String(), "QUICK RUN") {
		t.Errorf("a quick run is not marked (%v):\n%s", err, text.String())
	}
}

func TestAmount(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 12.34: "12.3", 1234: "1.23k", 1.5e6: "1.5M", 21.6e9: "21.6G",
	} {
		if got := amount(v); got != want {
			t.Errorf("amount(%v) = %s, want %s", v, got, want)
		}
	}
}
