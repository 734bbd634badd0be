package main

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"xroce/bench/result"
)

// TestAgain: what a busy machine left empty in all rounds is measured again, as often as
// told and no longer than it takes, and that is said.
func TestAgain(t *testing.T) {
	for _, tt := range []struct{ empty, times, runs int }{
		{0, 3, 0}, {1, 3, 2}, {2, 3, 3}, {9, 3, 3}, {9, 0, 0},
	} {
		ran := 0
		window := time.Second
		late := variant{name: "late", run: func(_ context.Context, p *place) (measurement, error) {
			if window *= 2; p.window != window {
				t.Errorf("%+v: a window of %v, want %v", tt, p.window, window)
			}
			if p.patience != ran+1 {
				t.Errorf("%+v: patience %d at try %d", tt, p.patience, ran)
			}
			if ran++; ran <= tt.empty {
				return measurement{}, errNothing
			}
			return measurement{value: 1}, nil
		}}
		var said bytes.Buffer
		out := result.Case{Variants: []string{"good", "late"}, Rows: []result.Row{
			{Variant: "good", Value: 1}, {Variant: "late"},
		}}
		if tt.empty == 0 {
			out.Rows[1].Value = 1
		}
		r := &rounds{
			bench: &bench{pairs: 1, window: time.Second}, c: &benchCase{name: "c"},
			able: []variant{{name: "good"}, late},
			out:  &out, progress: newProgress(&said, 2, time.Second),
		}
		r.again(t.Context(), tt.times)
		if ran != tt.runs || strings.Count(said.String(), "tried again") != tt.runs {
			t.Errorf("%+v: %d runs:\n%s", tt, ran, &said)
		}
		if p := r.progress; p.rows != tt.runs || p.total != 2+tt.runs {
			t.Errorf("%+v: the progress is %d of %d rows:\n%s", tt, p.rows, p.total, &said)
		}
		if dead := tt.empty >= tt.times && tt.empty > 0; (len(silent(&out)) == 1) != dead {
			t.Errorf("%+v: silent %v", tt, silent(&out))
		}
	}
}

// eachRan wants a row of each variant in each round, and more only of one that moved nothing in
// those, and so was tried again.
func eachRan(t *testing.T, c *result.Case, rounds int) {
	t.Helper()
	of := map[string][]result.Row{}
	for _, r := range c.Rows {
		of[r.Variant] = append(of[r.Variant], r)
	}
	if len(of) != len(c.Variants) {
		t.Errorf("%s: rows of %d variants, want %q", c.Name, len(of), c.Variants)
	}
	for name, rows := range of {
		moved := func(r result.Row) bool { return r.Value > 0 }
		if n := len(rows); n < rounds || n > rounds && slices.ContainsFunc(rows[:rounds], moved) {
			t.Errorf("%s: %d rows of %q, want %d", c.Name, n, name, rounds)
		}
	}
}
