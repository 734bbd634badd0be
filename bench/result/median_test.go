package result

import (
	"slices"
	"strings"
	"testing"
	"time"

	"xroce/bench/stage"
)

// run is a whole run in which we have a ratio to raw frames.
func run(hour int, value float64) *Document {
	d := &Document{
		Time: time.Date(2026, 11, 21, hour, 0, 0, 0, time.UTC), Pairs: 3, Window: 1,
		Cases: []Case{{
			Name: "send-64", Variants: []string{ours, raw},
			Settings: stage.Settings{Qdisc: "pfifo limit 1000", NAPI: "threaded at B"},
		}},
	}
	for round := range 3 {
		// One round in each run is far off.
		off := 1.0
		if round == 1 {
			off = 10
		}
		d.Cases[0].Rows = append(d.Cases[0].Rows,
			Row{Round: round, Variant: ours, Value: value * off},
			Row{Round: round, Variant: raw, Value: 1})
	}
	return d
}

func runs() Runs {
	return Runs{run(1, 0.5), run(2, 0.7), run(3, 0.8), run(4, 0.9), run(5, 0.6)}
}

func TestMedians(t *testing.T) {
	r := runs()
	if err := r.Check([]string{"send-64"}); err != nil {
		t.Fatal(err)
	}
	table := r.ratioTable()
	want := []string{
		"send-64", ours, raw, "0.70", "0.50 … 0.90", "5", "pfifo, NAPI thread",
	}
	if len(table.rows) != 1 || !slices.Equal(table.rows[0], want) {
		t.Errorf("%q, want %q", table.rows, want)
	}
	found := false
	for _, row := range r.goalTable().rows {
		if row[0] == "SEND rate of 64 B, of raw" {
			found = true
			if row[2] != "0.7" || row[3] != "0.5 … 0.9" || row[5] != "NOT met" {
				t.Errorf("goal: %q", row)
			}
		}
	}
	if !found {
		t.Error("the goal is not judged")
	}
	var text, page strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	if err := r.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"2026-11-21 05:00", "0.50 … 0.90", "NOT met"} {
		if !strings.Contains(text.String(), s) || !strings.Contains(page.String(), s) {
			t.Errorf("%q is missing in\n%s\n%s", s, text.String(), page.String())
		}
	}
	// A run in which nothing counts is not among them.
	for i := range r[0].Cases[0].Rows {
		r[0].Cases[0].Rows[i].Void = "the control moved"
	}
	if row := r.ratioTable().rows[0]; row[3] != "0.75" || row[5] != "4" {
		t.Errorf("without a run: %q", row)
	}
}

func TestTuning(t *testing.T) {
	for want, s := range map[string]stage.Settings{
		"–":                     {},
		"noqueue, NAPI softirq": {Qdisc: "noqueue, untuned", NAPI: "in the sender's softirq"},
		"pfifo, NAPI thread":    {Qdisc: "pfifo limit 1000", NAPI: "threaded at B, nice 10"},
	} {
		if got := tuning(s); got != want {
			t.Errorf("%+v is %q, want %q", s, got, want)
		}
	}
}

func TestRunsAreWhole(t *testing.T) {
	for name, change := range map[string]func(Runs) Runs{
		"four": func(r Runs) Runs { return r[:4] },
		"none": func(Runs) Runs { return nil },
		"one of them twice": func(r Runs) Runs {
			r[4] = r[3]
			return r
		},
		"a quick one": func(r Runs) Runs {
			r[2].Quick = true
			return r
		},
		"a rerun of some cases": func(r Runs) Runs {
			r[2].Cases[0].Name = "send-65"
			return r
		},
		"a run without rows": func(r Runs) Runs {
			r[2].Cases[0].Rows = nil
			return r
		},
		"another window": func(r Runs) Runs {
			r[2].Window = 2
			return r
		},
	} {
		if err := change(runs()).Check([]string{"send-64"}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
