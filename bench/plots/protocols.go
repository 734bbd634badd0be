package main

import (
	"fmt"

	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"xroce/bench/result"
)

// protocolPanels have the goodput of each protocol by length with that of the machine's choice,
// and the choice by the best of them.
func protocolPanels(d *result.Document) ([]*panel, error) {
	lengths := lengthsOf(d, result.SizePrefix)
	if len(lengths) == 0 {
		return nil, fmt.Errorf("%w: %s*", errMissing, result.SizePrefix)
	}
	const ours = "ours"
	by := newPanel("Many messages under way", "length of the message", "goodput, Gbit/s")
	by.logX(16, byteName)
	by.logY(10, plain)
	for _, v := range append(protocolNames, struct{ variant, name string }{ours, "chosen"}) {
		var at plotter.XYs
		for _, n := range lengths {
			if s := d.Case(fmt.Sprint(result.SizePrefix, n)).Values(v.variant); s.N > 0 {
				at = append(at, plotter.XY{X: float64(n), Y: s.Median / 1e9})
			}
		}
		if err := by.line(v.name, inks[v.variant], at); err != nil {
			return nil, err
		}
	}
	by.Legend.Top, by.Legend.Left = true, true
	by.headroom(100)
	choice := newPanel("The choice, of the best protocol", "length of the message", "ratio")
	choice.logX(16, byteName)
	choice.Y.Min, choice.Y.Max = 0, 1.5
	var at spreads
	for _, n := range lengths {
		c := d.Case(fmt.Sprint(result.SizePrefix, n))
		s := c.Ratio(ours, c.Best(ours))
		if s.N > 0 {
			at.add(float64(n), s)
		}
	}
	one, err := plotter.NewLine(choice.place(plotter.XYs{
		{X: float64(lengths[0]), Y: 1}, {X: float64(lengths[len(lengths)-1]), Y: 1},
	}))
	if err != nil {
		return nil, err
	}
	one.Color, one.Width = black.colour, vg.Points(0.8)
	choice.Add(one)
	if err := choice.line("median, quartiles of the rounds", black, at.XYs); err != nil {
		return nil, err
	}
	if len(at.XYs) > 0 {
		at.XYs = choice.place(at.XYs)
		bars, err := plotter.NewYErrorBars(at)
		if err != nil {
			return nil, err
		}
		bars.Color, bars.Width = black.colour, vg.Points(1.2)
		choice.Add(bars)
	}
	choice.Legend.Top, choice.Legend.Left = true, true
	return []*panel{by, choice}, nil
}
