package result

import (
	"fmt"
	"strings"

	"xroce/bench/ratio"
	"xroce/bench/worker"
)

// A Goal is what some number is to be. Case, Variant and Peer are the names of the
// harness; a goal about all cases has none, one about an amount has no peer.
type Goal struct {
	Text    string // for people
	Bar     float64
	AtMost  bool // the number is to be at most the bar, else at least
	Case    string
	Variant string
	Peer    string
	measure func(*Document, *Goal) ratio.Spread
}

// A Verdict is a goal beside what was measured.
type Verdict struct {
	Goal     Goal
	Measured ratio.Spread // without numbers when nothing was
}

// slack is how far the quartile on the wrong side may be from the bar: a median
// that happens to be right of numbers that are all over the place is none.
const slack = 0.9

// Met reports whether the goal is met, false when nothing was measured.
func (v Verdict) Met() bool {
	s, bar := v.Measured, v.Goal.Bar
	switch {
	case s.N == 0:
		return false
	case v.Goal.AtMost:
		return s.Median <= bar && s.Q3 <= bar/slack
	}
	return s.Median >= bar && s.Q1 >= slack*bar
}

// String is "met", "NOT met" or "not measured".
func (v Verdict) String() string {
	switch {
	case v.Measured.N == 0:
		return "not measured"
	case v.Met():
		return "met"
	}
	return "NOT met"
}

// in measures something of the goal's case.
func in(of func(*Case, *Goal) ratio.Spread) func(*Document, *Goal) ratio.Spread {
	return func(d *Document, g *Goal) ratio.Spread {
		for i := range d.Cases {
			if d.Cases[i].Name == g.Case {
				return of(&d.Cases[i], g)
			}
		}
		return ratio.Spread{}
	}
}

// against is the ratio of the variant to the peer.
func against(c *Case, g *Goal) ratio.Spread { return c.compare(g.Variant, g.Peer).Ratio }

// amounts are the values of the variant.
func amounts(c *Case, g *Goal) ratio.Spread { return c.spread(g.Variant, value) }

// ofIdeal is the variant's share of the ideal of go-back-N.
func ofIdeal(c *Case, g *Goal) ratio.Spread {
	ppm, _ := c.point(g.Variant)
	return c.shareOfIdeal(g.Variant, ppm/1e6)
}

// heapOf collects a number of each window of workers of a mode, of the cases whose name
// begins with prefix. The largest takes the place of the third
// quartile: one bad window is one too many.
func heapOf(mode, prefix string, of func(h *worker.Heap, messages float64) float64,
) func(*Document, *Goal) ratio.Spread {
	return func(d *Document, _ *Goal) ratio.Spread {
		var v []float64
		d.heaps(mode, func(c *Case, h *worker.Heap, messages float64) {
			if strings.HasPrefix(c.Name, prefix) {
				v = append(v, of(h, messages))
			}
		})
		s := ratio.SpreadOf(v)
		s.Q3 = s.Largest
		return s
	}
}

// borders is how many objects a window may allocate that do not grow with the messages:
// to notice its borders, for contexts that end a sleep, for what the kernel tells of
// neighbours, and the runtime's own for goroutines that wait. Where it sleeps a process
// was seen to take 2 to 23 of them in windows of 8000 messages. A device asks thirty times a
// second for its XDP program and what that missed, which takes 80 objects.
const borders = 128

// allocations are objects a message.
func allocations(h *worker.Heap, messages float64) float64 {
	if h.Mallocs <= borders {
		return 0
	}
	return float64(h.Mallocs-borders) / messages
}

func collected(h *worker.Heap, _ float64) float64 { return float64(h.Collections) }

// The names by which goals find variants.
const (
	ours = "ours"
	raw  = "raw AF_XDP"
	// placed are raw frames with a copy and a CRC at each end.
	placed = "raw AF_XDP, copied and checked"
	inC    = "libxdp (C)"
)

// Goals are those of the project, in the order of printing.
func Goals() []Goal {
	goals := []Goal{
		{"raw send of 64 B, of C", 0.95, false, "raw-tx-64", ours, inC, in(against)},
		{"raw receive of 64 B, of C", 0.95, false, "raw-rx-64", ours, inC, in(against)},
	}
	for _, pathMTU := range []int{256, 512, 1024, 2048, 4096} {
		goals = append(goals, Goal{
			fmt.Sprintf("WRITE of 1 MiB, of raw payload rate, path MTU %d", pathMTU), 0.75, false,
			fmt.Sprintf("goodput-%d", pathMTU), ours, raw, in(against),
		})
	}
	for _, pathMTU := range []int{1024, 2048, 4096} {
		goals = append(goals, Goal{
			fmt.Sprintf("WRITE of 1 MiB, of raw, copied and checked, path MTU %d", pathMTU), 0.9,
			false, fmt.Sprintf("goodput-%d", pathMTU), ours, placed, in(against),
		})
	}
	for _, block := range []int{512, 4096} {
		for _, other := range []string{"packed by hand", "list of SGEs"} {
			goals = append(goals, Goal{
				fmt.Sprintf("layout of %d-byte blocks, of %s", block, other), 1, false,
				fmt.Sprintf("layout-%d", block), ours, other, in(against),
			})
		}
	}
	goals = append(goals, turnGoals()...)
	goals = append(goals, messageGoals()...)
	goals = append(goals, exchangeGoals()...)
	goals = append(goals, tunnelGoals()...)
	goals = append(goals, wireGoals()...)
	return append(goals, []Goal{
		{"SEND rate of 64 B, of raw", 0.75, false, "send-64", ours, raw, in(against)},
		{
			"SEND rate of 64 B, of raw, copied and checked", 0.9, false,
			"send-64", ours, placed, in(against),
		},
		{"rate of 10,000 QPs, of one", 0.85, false, "qps-64", "10000 QPs", "1 QP", in(against)},
		{
			"selective repeat at 1 % loss, of lossless", 0.8, false,
			"loss-selective", "1 % loss", "0 % loss", in(against),
		},
		{
			"go-back-N at 1 % loss, of its ideal", 0.97, false,
			"loss-gbn", "1 % loss", "0 % loss", in(ofIdeal),
		},
		{
			"decode and check ICRC, 64 B, ns", 60, true,
			"packet-64", "decode and check ICRC", "", in(amounts),
		},
		{
			"write headers and ICRC, 64 B, ns", 60, true,
			"packet-64", "write headers and ICRC", "", in(amounts),
		},
		{
			"allocations a message, both ends", 0, true, "", "", "",
			heapOf(worker.RC, "", allocations),
		},
		{
			"allocations a message with loss, both ends", 0, true, "", "", "",
			heapOf(worker.RC, lossPrefix, allocations),
		},
		{
			"garbage collections in a window", 0, true, "", "", "",
			heapOf(worker.RC, "", collected),
		},
	}...)
}

// turnGoals are those of layouts beside other ways to send blocks, in turn in one process.
func turnGoals() []Goal {
	var goals []Goal
	for _, kind := range []struct{ name, text string }{
		{"turns", "in turn"}, {"alone", "in turn, one message at a time"},
	} {
		for _, block := range []int{512, 4096} {
			for _, other := range []string{"packed by hand", "list of SGEs"} {
				goals = append(goals, Goal{
					fmt.Sprintf("layout of %d-byte blocks, of %s, %s", block, other, kind.text), 1,
					false, fmt.Sprintf("layout-%s-%d", kind.name, block), other, "", in(amounts),
				})
			}
		}
	}
	return goals
}

// Judge holds the document against the goals.
func (d *Document) Judge() []Verdict {
	var list []Verdict
	for _, g := range Goals() {
		list = append(list, Verdict{g, g.measure(d, &g)})
	}
	return list
}

// concerns reports whether the document has something to say about a goal.
func (d *Document) concerns(v Verdict) bool {
	for i := range d.Cases {
		if d.Cases[i].Name == v.Goal.Case {
			return true
		}
	}
	return v.Measured.N > 0
}

// goalTable is what was judged, without the goals of cases that were not chosen.
func (d *Document) goalTable() table {
	t := table{
		title:  "Goals",
		header: []string{"goal", "bar", "measured", "quartiles", "n", "verdict"},
		notes: []string{
			fmt.Sprintf("Met: the median is on the right side of the bar, and the "+
				"quartile towards it misses by no more than a factor of %g.", slack),
			fmt.Sprintf("Allocations: those beyond %d a window.", borders),
		},
	}
	for _, v := range d.Judge() {
		if !d.concerns(v) {
			continue
		}
		sign := "≥"
		if v.Goal.AtMost {
			sign = "≤"
		}
		t.rows = append(t.rows, []string{
			v.Goal.Text, fmt.Sprintf("%s %g", sign, v.Goal.Bar), perhaps(v.Measured, "%.3g"),
			within(v.Measured, "%.3g"), fmt.Sprint(v.Measured.N), v.String(),
		})
	}
	return t
}
