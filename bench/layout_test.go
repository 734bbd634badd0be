package main

import "testing"

// TestTurns compares a layout with the other ways, and with itself: a ratio near 1 each, since it
// is the same bytes. What it really is needs longer windows.
func TestTurns(t *testing.T) {
	needMachine(t)
	d := quickly(t, "layout-turns-512,layout-alone-4096", 1)
	if len(d.Cases) != 2 {
		t.Fatalf("%d cases", len(d.Cases))
	}
	for _, c := range d.Cases {
		if len(c.Rows) != 3 {
			t.Errorf("%s: %d rows", c.Name, len(c.Rows))
		}
		for _, r := range c.Rows {
			if r.Void == "" && (r.Value < 0.5 || r.Value > 2) {
				t.Errorf("%s, %s: %v of the other's rate", c.Name, r.Variant, r.Value)
			}
		}
	}
}
