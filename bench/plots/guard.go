package main

import (
	"fmt"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"xroce/bench/result"
)

// guardPanels have when an announcement leaves, and what it takes to check a key.
func guardPanels(d *result.Document) ([]*panel, error) {
	announce, err := need(d, "msg-announce")
	if err != nil {
		return nil, err
	}
	key, err := need(d, "msg-key")
	if err != nil {
		return nil, err
	}
	left := newPanel("From Send to the announcement on the wire", "percentile", "time, µs")
	left.logY(10, plain)
	left.X.Tick.Marker = plot.ConstantTicks([]plot.Tick{
		{Value: 0, Label: "50"},
		{Value: 1, Label: "90"},
		{Value: 2, Label: "99"},
		{Value: 3, Label: "99.9"},
	})
	for _, v := range []struct {
		variant, name string
		ink           ink
	}{
		{"ours", "application asleep", green},
		{"computing meanwhile", "application computing, same processor", blue},
	} {
		at := percentiles(announce, v.variant)
		if err := left.line(v.name, v.ink, at); err != nil {
			return nil, err
		}
	}
	left.X.Min, left.X.Max = -0.2, 3.2
	left.headroom(4)
	left.Legend.Top, left.Legend.Left = true, true
	forged := uint64(0)
	for _, r := range key.Rows {
		if r.Variant == "forged keys" && len(r.Workers) > 0 {
			forged += r.Workers[0].Total
		}
	}
	right := newPanel(fmt.Sprintf("Storing 64 B; %s with forged keys: 0 bytes changed",
		millions(forged)), "", "ns a message")
	return []*panel{left, right}, right.bars([]bar{
		{"without a key", sky, key.Values("no key")},
		{"its key", green, key.Values("its key")},
		{"forged keys", red, key.Values("forged keys")},
	})
}

// millions names a large number.
func millions(n uint64) string {
	if n < 1e6 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%.0f million", float64(n)/1e6)
}

// percentiles are those of a time in microseconds: medians of the rounds.
func percentiles(c *result.Case, variant string) plotter.XYs {
	var at plotter.XYs
	for i, s := range c.RTT(variant) {
		if s.N > 0 {
			at = append(at, plotter.XY{X: float64(i), Y: s.Median / 1e3})
		}
	}
	return at
}
