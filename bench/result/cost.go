package result

import (
	"fmt"
	"strings"

	"xroce/bench/ratio"
	"xroce/bench/worker"
)

// perMessage is an amount of one worker divided by the messages of a row. They are
// those of the end that counts them; the two windows may differ in length.
func perMessage(r *Row, w *worker.Report, amount float64) (float64, bool) {
	rate := 0.0
	for _, one := range r.Workers {
		rate = max(rate, one.PerSecond())
	}
	if rate == 0 || w.Seconds <= 0 {
		return 0, false
	}
	return amount / (rate * w.Seconds), true
}

// An expense is one column of the table of costs.
type expense struct {
	name string
	of   func(*worker.Cost) (float64, bool)
}

var expenses = []expense{
	{"user cycles", func(c *worker.Cost) (float64, bool) {
		if c.Cycles == nil {
			return 0, false
		}
		return float64(c.Cycles.User), true
	}},
	{"kernel cycles", func(c *worker.Cost) (float64, bool) {
		if c.Cycles == nil {
			return 0, false
		}
		return float64(c.Cycles.Kernel), true
	}},
	{"user ns", func(c *worker.Cost) (float64, bool) { return float64(c.UserTime), true }},
	{"kernel ns", func(c *worker.Cost) (float64, bool) { return float64(c.SystemTime), true }},
	{"allocations", func(c *worker.Cost) (float64, bool) {
		if c.Heap == nil {
			return 0, false
		}
		return float64(c.Heap.Mallocs), true
	}},
}

// spent is an expense a message at one end of a variant.
func (c *Case) spent(variant string, end int, e expense) ratio.Spread {
	return c.spread(variant, func(r *Row) (float64, bool) {
		if end >= len(r.Workers) || r.Workers[end].Cost == nil {
			return 0, false
		}
		w := &r.Workers[end]
		amount, ok := e.of(w.Cost)
		if !ok {
			return 0, false
		}
		return perMessage(r, w, amount)
	})
}

// costTable has what a message or a frame costs at each end, medians, for all
// cases that move many.
func (d *Document) costTable() table {
	t := table{
		title:  "Cost of a message at its sender and its receiver, medians",
		header: []string{"case", "variant", "end"},
	}
	for _, e := range expenses {
		t.header = append(t.header, e.name)
	}
	t.header = append(t.header, "collections")
	for i := range d.Cases {
		c := &d.Cases[i]
		for _, variant := range c.Variants {
			for end, name := range []string{"sends", "receives"} {
				row := []string{c.Name, variant, name}
				any := false
				for _, e := range expenses {
					s := c.spent(variant, end, e)
					any = any || s.N > 0
					row = append(row, typical(s))
				}
				if any {
					t.rows = append(t.rows, append(row, c.collections(variant, end)))
				}
			}
		}
	}
	if why := d.noCycles(); why != "" {
		t.notes = append(t.notes, "Cycles: "+why+".")
	}
	t.notes = append(t.notes, "Kernel cycles are those of the end's processor, kernel ns those "+
		"of its process: threaded NAPI is in the first only.")
	return t
}

// collections are the garbage collections within the windows of an end, in all
// rounds.
func (c *Case) collections(variant string, end int) string {
	var n uint64
	known := false
	for _, r := range c.Rows {
		if r.Variant != variant || end >= len(r.Workers) {
			continue
		}
		if cost := r.Workers[end].Cost; cost != nil && cost.Heap != nil {
			known, n = true, n+cost.Heap.Collections
		}
	}
	if !known {
		return "–"
	}
	return fmt.Sprint(n)
}

// noCycles says why a worker counted none, or "".
func (d *Document) noCycles() string {
	for _, c := range d.Cases {
		for _, r := range c.Rows {
			for _, w := range r.Workers {
				if w.Cost != nil && w.Cost.NoCycles != "" {
					return w.Cost.NoCycles
				}
			}
		}
	}
	return ""
}

// heaps calls f for the heap of every window that counts, of workers whose mode begins so, with
// the messages of that window.
func (d *Document) heaps(mode string, f func(c *Case, h *worker.Heap, messages float64)) {
	for i := range d.Cases {
		c := &d.Cases[i]
		for k := range c.Rows {
			r := &c.Rows[k]
			for _, w := range r.Workers {
				if r.Void != "" || w.Cost == nil || w.Cost.Heap == nil ||
					!strings.HasPrefix(w.Mode, mode) {
					continue
				}
				if share, ok := perMessage(r, &w, 1); ok {
					f(c, w.Cost.Heap, 1/share)
				}
			}
		}
	}
}
