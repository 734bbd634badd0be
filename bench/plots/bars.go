package main

import (
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"xroce/bench/ratio"
)

// spreads are medians with their quartiles.
type spreads struct {
	plotter.XYs
	plotter.YErrors
}

// add adds one.
func (s *spreads) add(x float64, of ratio.Spread) {
	s.XYs = append(s.XYs, plotter.XY{X: x, Y: of.Median})
	s.YErrors = append(s.YErrors, struct{ Low, High float64 }{
		of.Median - of.Q1, of.Q3 - of.Median,
	})
}

// A bar is one of a panel, with its quartiles, drawn in an ink and named below.
type bar struct {
	name  string
	ink   ink
	value ratio.Spread
}

// bars draws them beside each other, from 0 on. What they are is written below in the order of
// the legend, where there is no room for it.
func (p *panel) bars(list []bar) error {
	var top float64
	var ticks []plot.Tick
	for i, b := range list {
		chart, err := plotter.NewBarChart(plotter.Values{b.value.Median}, vg.Points(30))
		if err != nil {
			return err
		}
		chart.XMin, chart.Color = float64(i), b.ink.colour
		chart.LineStyle.Width = 0
		var s spreads
		s.add(float64(i), b.value)
		whiskers, err := plotter.NewYErrorBars(s)
		if err != nil {
			return err
		}
		whiskers.Color, whiskers.Width = black.colour, vg.Points(1.2)
		name, err := plotter.NewLabels(plotter.XYLabels{
			XYs:    plotter.XYs{{X: float64(i), Y: b.value.Q3}},
			Labels: []string{plain3(b.value.Median)},
		})
		if err != nil {
			return err
		}
		for k := range name.TextStyle {
			name.TextStyle[k].Font.Size, name.TextStyle[k].Font.Variant = smallSize, "Sans"
			name.TextStyle[k].XAlign = -0.5
		}
		name.Offset.Y = vg.Points(4)
		p.Add(chart, whiskers, name)
		top = max(top, b.value.Q3)
		ticks = append(ticks, plot.Tick{Value: float64(i), Label: b.name})
	}
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Min, p.X.Max = -0.6, float64(len(list))-0.4
	p.Y.Min, p.Y.Max = 0, 1.2*top
	return nil
}
