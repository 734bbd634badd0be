package main

import (
	"slices"
	"testing"
)

// TestTurns compares works with others in turn: a row has the ratio, unless an end was starved.
// What the ratio is needs longer windows, and a machine at rest.
func TestTurns(t *testing.T) {
	needMachine(t)
	d := quickly(t, "layout-turns-512,layout-alone-4096,rpc-turns-64", 1)
	if len(d.Cases) != 3 {
		t.Fatalf("%d cases", len(d.Cases))
	}
	for _, c := range d.Cases {
		eachRan(t, &c, 1)
		measured := false
		for _, r := range c.Rows {
			if len(r.Workers) == 0 {
				continue
			}
			measured = true
			if ratio := r.Workers[0].Ratio; r.Value <= 0 || r.Value != ratio ||
				!slices.Contains(c.Variants, r.Variant) {
				t.Errorf("%s, %s: %v, and %v by the worker", c.Name, r.Variant, r.Value, ratio)
			}
		}
		if !measured {
			t.Errorf("%s: nothing was measured", c.Name)
		}
	}
}
