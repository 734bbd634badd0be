package result

import (
	"math"
	"strings"
	"testing"

	"xroce/bench/ratio"
	"xroce/bench/worker"
)

// reliable is a case of two rounds of one variant of ours, which allocates so many
// objects a window.
func reliable(name string, mallocs uint64) Case {
	c := Case{Name: name, Variants: []string{ours}}
	for round := range 2 {
		sender := worker.Report{
			Mode: worker.RC, Packets: 1000, Seconds: 1,
			Cost: &worker.Cost{
				UserTime: 2000, SystemTime: 4000, Heap: &worker.Heap{Mallocs: 1},
				Cycles: &worker.Cycles{User: 300000, Kernel: 900000},
			},
		}
		receiver := worker.Report{
			Mode: worker.RC, Seconds: 2,
			Cost: &worker.Cost{NoCycles: "none here", Heap: &worker.Heap{Mallocs: mallocs}},
		}
		c.Rows = append(c.Rows, Row{
			Round: round, Variant: ours, Value: 1, Workers: []worker.Report{sender, receiver},
		})
	}
	return c
}

func TestMet(t *testing.T) {
	spread := func(q1, median, q3 float64) ratio.Spread {
		return ratio.Spread{N: 7, Q1: q1, Median: median, Q3: q3}
	}
	for _, tt := range []struct {
		bar    float64
		atMost bool
		s      ratio.Spread
		want   string
	}{
		{0.5, false, spread(0.45, 0.5, 0.6), "met"},
		{0.5, false, spread(0.44, 0.5, 0.6), "NOT met"},
		{0.5, false, spread(0.48, 0.49, 0.6), "NOT met"},
		{0.9, true, spread(0.1, 0.9, 1.0), "met"},
		{0.9, true, spread(0.1, 0.9, 1.01), "NOT met"},
		{0.9, true, spread(0.1, 0.91, 0.91), "NOT met"},
		{0, true, spread(0, 0, 0), "met"},
		{0, true, spread(0, 0, 0.001), "NOT met"},
		{0, true, ratio.Spread{}, "not measured"},
	} {
		v := Verdict{Goal{Bar: tt.bar, AtMost: tt.atMost}, tt.s}
		if got := v.String(); got != tt.want || v.Met() != (tt.want == "met") {
			t.Errorf("%+v against %v: %s, want %s", tt.s, tt.bar, got, tt.want)
		}
	}
}

// verdict is what a document says about the goal with this text.
func verdict(t *testing.T, d *Document, text string) Verdict {
	t.Helper()
	for _, v := range d.Judge() {
		if v.Goal.Text == text {
			return v
		}
	}
	t.Fatalf("no goal is called %q", text)
	return Verdict{}
}

func TestAllocationGoals(t *testing.T) {
	const (
		all   = "allocations a message, both ends"
		lossy = "allocations a message with loss, both ends"
	)
	quiet := &Document{Cases: []Case{reliable("send-64", borders)}}
	if v := verdict(t, quiet, all); !v.Met() || v.Measured.N != 4 {
		t.Errorf("%d objects a window are %+v, %s", borders, v.Measured, v)
	}
	if v := verdict(t, quiet, lossy); v.String() != "not measured" {
		t.Errorf("with loss: %s, want not measured", v)
	}
	// One window of four that allocates is enough to miss the goal. Its messages
	// are those of two seconds.
	d := &Document{Cases: []Case{reliable("send-64", 0), reliable("loss-gbn", 0)}}
	d.Cases[1].Rows[1].Workers[1].Cost.Heap = &worker.Heap{Mallocs: borders + 500, Collections: 1}
	for text, n := range map[string]int{all: 8, lossy: 4} {
		v := verdict(t, d, text)
		if v.Met() || v.Measured.N != n || math.Abs(v.Measured.Largest-0.25) > 1e-9 {
			t.Errorf("%s: %+v, %s", text, v.Measured, v)
		}
	}
	if v := verdict(t, d, "garbage collections in a window"); v.Met() {
		t.Errorf("a collection went unnoticed: %+v", v.Measured)
	}
	// What others allocate is theirs, and what is void says nothing.
	d.Cases[1].Rows[1].Void = "the control moved"
	d.Cases[0].Rows[0].Workers[1] = worker.Report{
		Mode: "native copy", Seconds: 1,
		Cost: &worker.Cost{Heap: &worker.Heap{Mallocs: 1000}},
	}
	if v := verdict(t, d, all); !v.Met() || v.Measured.N != 5 {
		t.Errorf("%+v, %s, want 5 windows without objects", v.Measured, v)
	}
}

func TestRatioGoals(t *testing.T) {
	d := &Document{Cases: []Case{{
		Name: "rtt-64", LowerIsBetter: true,
		Variants: []string{ours, piggybacked, "ours, busy background loop", raw, spinningUDP},
		Rows: []Row{
			{Variant: ours, Value: 119},
			{Variant: piggybacked, Value: 90},
			{Variant: "ours, busy background loop", Value: 150},
			{Variant: raw, Value: 100},
			{Variant: "UDP sockets, spinning", Value: 150},
		},
	}}}
	if v := verdict(t, d, "half round trip of 64 B, of raw"); !v.Met() {
		t.Errorf("1.19 is %s of at most 1.2", v)
	}
	if v := verdict(t, d, "half round trip of 64 B, of UDP sockets"); v.Met() {
		t.Errorf("0.79 is %s of at most 0.68", v)
	}
	var text strings.Builder
	table := d.goalTable()
	if err := table.writeText(&text); err != nil {
		t.Fatal(err)
	}
	for want, there := range map[string]bool{
		"≤ 1.2": true, "NOT met": true, "not measured": false, "SEND rate": false,
	} {
		if strings.Contains(text.String(), want) != there {
			t.Errorf("%q in the table should be %v:\n%s", want, there, text.String())
		}
	}
}

// TestTurnGoals: the value of a row is the ratio already.
func TestTurnGoals(t *testing.T) {
	d := &Document{Cases: []Case{{
		Name: "layout-turns-512", Variants: []string{"a layout", "packed by hand"},
		Rows: []Row{
			{Variant: "a layout", Value: 1.02},
			{Variant: "packed by hand", Value: 1.01},
			{Variant: "list of SGEs", Value: 0.99},
		},
	}}}
	if v := verdict(t, d, "layout of 512-byte blocks, of packed by hand, in turn"); !v.Met() {
		t.Errorf("1.01 is %s of at least 1", v)
	}
	if v := verdict(t, d, "layout of 512-byte blocks, of list of SGEs, in turn"); v.Met() {
		t.Errorf("0.99 is %s of at least 1", v)
	}
}

func TestGoalOfASkippedCase(t *testing.T) {
	d := &Document{Cases: []Case{{
		Name: "loss-selective", Skipped: []Skip{{"1 % loss", "cannot"}},
	}}}
	table := d.goalTable()
	if len(table.rows) != 1 || table.rows[0][5] != "not measured" {
		t.Errorf("rows %q, want one goal that is not measured", table.rows)
	}
	if empty := (&Document{}).goalTable(); len(empty.rows) != 0 {
		t.Errorf("goals of nothing: %q", empty.rows)
	}
}
