package main

import (
	"fmt"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"

	"xroce/bench/result"
)

// partInks are those of the parts of a profile, in their order.
var partInks = []ink{black, orange, red, blue, sky, {colour: faint}}

// whereNames makes names of cases short enough to stand beside each other.
var whereNames = strings.NewReplacer("goodput-", "MTU\n", "-64, piggybacked ACKs", "\nrides",
	"-64, 1 QP", "\n1", "-64, 10000 QPs", "\n10,000", "-", "\n")

// wherePanels have where the time of a packet goes at each end.
func wherePanels(d *result.Document) ([]*panel, error) {
	if len(d.Profiles) == 0 {
		return nil, fmt.Errorf("%w: profiles", errMissing)
	}
	var panels []*panel
	for _, end := range []string{"sends", "receives"} {
		p := newPanel("Who "+end+": time of its process", "", "%")
		p.wide = true
		if err := p.stacks(d.Profiles, end); err != nil {
			return nil, err
		}
		panels = append(panels, p)
	}
	return panels, nil
}

// stacks draws the profiles of an end beside each other, their parts upon each other.
func (p *panel) stacks(profiles []result.Profile, end string) error {
	var ticks []plot.Tick
	under := make([]*plotter.BarChart, 0, len(profiles))
	width := min(vg.Points(28), vg.Points(200)/vg.Length(max(1, len(profiles))))
	for _, one := range profiles {
		if one.End != end {
			continue
		}
		var below *plotter.BarChart
		for i, part := range one.Parts.List() {
			chart, err := plotter.NewBarChart(plotter.Values{100 * part.Share}, width)
			if err != nil {
				return err
			}
			chart.XMin, chart.Color = float64(len(ticks)), partInks[i].colour
			chart.LineStyle.Width = 0
			if below != nil {
				chart.StackOn(below)
			}
			below = chart
			p.Add(chart)
			if len(ticks) == 0 {
				under = append(under, chart)
			}
		}
		name := whereNames.Replace(one.Case)
		ticks = append(ticks, plot.Tick{Value: float64(len(ticks)), Label: name})
	}
	for i, part := range (result.Parts{}).List() {
		if i < len(under) {
			p.Legend.Add(part.Name, under[i])
		}
	}
	p.Legend.Top = true
	p.X.Tick.Marker = plot.ConstantTicks(ticks)
	p.X.Tick.Label.Font.Size = vg.Points(6)
	p.X.Min, p.X.Max = -0.6, 1.35*float64(len(ticks))+2 // room for the legend
	p.Y.Min, p.Y.Max = 0, 100
	return nil
}
