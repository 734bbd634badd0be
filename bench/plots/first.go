package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"xroce/bench/ratio"
	"xroce/bench/result"
)

// firstPrefix begins the names of the cases of the first messages of a connection.
const firstPrefix = "msg-first-"

// protocolNames are what the variants are called for people.
var protocolNames = []struct{ variant, name string }{
	{"eager", "eager, small slot"},
	{"frag", "fragments, small slots"},
	{"provision", "provisioned slot"},
	{"get", "rendezvous, get"},
	{"put", "rendezvous, put"},
}

// firstPanels have half a round trip of the 1st, 2nd and 10th message by length, by protocol.
func firstPanels(d *result.Document) ([]*panel, error) {
	lengths := lengthsOf(d, firstPrefix)
	if len(lengths) == 0 {
		return nil, fmt.Errorf("%w: %s*", errMissing, firstPrefix)
	}
	var panels []*panel
	for _, n := range []int{1, 2, 10} {
		p := newPanel(fmt.Sprintf("Message %d of a connection", n), "length of the message",
			"half round trip, µs")
		p.logX(16, byteName)
		p.logY(10, plain)
		for _, v := range protocolNames {
			at := nthPoints(d, lengths, v.variant, n)
			if err := p.line(v.name, inks[v.variant], at); err != nil {
				return nil, err
			}
			if v.variant != "get" {
				continue
			}
			pinned, err := pinnedPoints(d, at)
			if err != nil {
				return nil, err
			}
			if err := p.line("get, both ends pinning", inks["get"].dash(), pinned); err != nil {
				return nil, err
			}
		}
		p.Legend.Top, p.Legend.Left = true, true
		panels = append(panels, p)
	}
	level(panels)
	panels[0].headroom(10)
	level(panels)
	for _, p := range panels[1:] {
		p.Legend = plot.NewLegend() // one is enough
	}
	return panels, nil
}

// level gives panels the same vertical axis.
func level(panels []*panel) {
	low, high := panels[0].Y.Min, panels[0].Y.Max
	for _, p := range panels {
		low, high = min(low, p.Y.Min), max(high, p.Y.Max)
	}
	for _, p := range panels {
		p.Y.Min, p.Y.Max = low, high
	}
}

// lengthsOf are the lengths of messages at the end of the names of cases, ascending.
func lengthsOf(d *result.Document, prefix string) []int {
	var lengths []int
	for _, c := range d.Cases {
		if n, err := strconv.Atoi(strings.TrimPrefix(c.Name, prefix)); err == nil {
			lengths = append(lengths, n)
		}
	}
	slices.Sort(lengths)
	return lengths
}

// nthPoints are half the round trips of the n-th message in microseconds: medians of the rounds.
func nthPoints(d *result.Document, lengths []int, variant string, n int) plotter.XYs {
	var at plotter.XYs
	for _, length := range lengths {
		var v []float64
		for _, r := range d.Case(fmt.Sprint(firstPrefix, length)).Rows {
			if r.Variant != variant || r.Void != "" || len(r.Workers) == 0 {
				continue
			}
			for _, one := range r.Workers[0].Nth {
				if one.Message == n && one.RTT.Samples > 0 {
					v = append(v, float64(one.RTT.P50)/2/1e3)
				}
			}
		}
		if len(v) > 0 {
			at = append(at, plotter.XY{X: float64(length), Y: ratio.SpreadOf(v).Median})
		}
	}
	return at
}

// pinnedPoints add what both ends would take to pin the message: what an adapter needs, and we do
// not. Between two lengths that were measured the cost is taken to be a straight line.
func pinnedPoints(d *result.Document, at plotter.XYs) (plotter.XYs, error) {
	costs, err := pinCosts(d)
	if err != nil {
		return nil, err
	}
	var more plotter.XYs
	for _, p := range at {
		more = append(more, plotter.XY{X: p.X, Y: p.Y + 2*between(costs, p.X)})
	}
	return more, nil
}

// pinCosts are microseconds by bytes, ascending.
func pinCosts(d *result.Document) (plotter.XYs, error) {
	c, err := need(d, "msg-pin")
	if err != nil {
		return nil, err
	}
	var costs plotter.XYs
	for _, at := range c.At {
		if s := c.Values(at.Variant); s.N > 0 {
			costs = append(costs, plotter.XY{X: at.At, Y: s.Median / 1e3})
		}
	}
	if len(costs) < 2 {
		return nil, fmt.Errorf("%w: msg-pin", errMissing)
	}
	return costs, nil
}

// between is where x is on the lines between points; before the first and behind the last they
// go on as they are there, but not below 0.
func between(points plotter.XYs, x float64) float64 {
	i := 1
	for i < len(points)-1 && points[i].X < x {
		i++
	}
	a, b := points[i-1], points[i]
	if x <= points[0].X {
		return points[0].Y // the least there is: a call
	}
	return max(0, a.Y+(b.Y-a.Y)*(x-a.X)/(b.X-a.X))
}
