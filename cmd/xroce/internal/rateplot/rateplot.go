package rateplot

import (
	"image/color"
	"io"
	"math"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"

	"xroce/engine/sim/congestion"
)

// The size of the picture.
const (
	width  = 7.4 * vg.Inch
	height = 5.2 * vg.Inch
	margin = 0.12 * vg.Inch
)

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

// The colours of flows, those of Okabe and Ito, which people tell apart who see colours
// differently. With more flows than colours they are drawn thin, and it is the bundle that
// tells.
var (
	colours = []color.Color{
		rgb(0x0072b2), rgb(0xd55e00), rgb(0x009e73), rgb(0xcc79a7),
		rgb(0xe69f00), rgb(0x56b4e9), rgb(0x222222), rgb(0x8c6d1f),
	}
	paper, faint, grey = rgb(0xffffff), rgb(0xdddddd), rgb(0x777777)
)

// smoothed is over how many samples a rate is averaged: 0.2 ms, or single frames are all there is
// to see.
const smoothed = 4

// Write draws a result.
func Write(w io.Writer, r *congestion.Result) error {
	rates := panel(r.About, "Gb/s of each flow")
	if err := addRates(rates, r); err != nil {
		return err
	}
	queue := panel("", "KB queued in the switch")
	queue.X.Label.Text = "ms"
	if err := addQueue(queue, r); err != nil {
		return err
	}
	canvas := vgsvg.New(width, height)
	whole := draw.New(canvas)
	whole.SetColor(paper)
	whole.Fill(whole.Rectangle.Path())
	rows := [][]*plot.Plot{{rates}, {queue}}
	tiles := draw.Tiles{
		Rows: 2, Cols: 1, PadY: margin,
		PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: 2 * margin,
	}
	for i, row := range plot.Align(rows, tiles, whole) {
		rows[i][0].Draw(row[0])
	}
	_, err := canvas.WriteTo(w)
	return err
}

// panel is an empty one.
func panel(title, y string) *plot.Plot {
	p := plot.New()
	p.BackgroundColor = paper
	p.Title.Text, p.Y.Label.Text = title, y
	p.Title.Padding = vg.Points(6)
	plain := font.Font{Typeface: "Liberation", Variant: "Sans", Size: 10}
	for _, s := range []*text.Style{
		&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle,
		&p.X.Tick.Label, &p.Y.Tick.Label, &p.Legend.TextStyle,
	} {
		s.Font = plain
	}
	p.Legend.Top = true
	p.X.Tick.Marker, p.Y.Tick.Marker = round{}, round{}
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	p.Add(grid)
	return p
}

// round are ticks at round numbers, some six of them.
type round struct{}

// Ticks implements plot.Ticker.
func (round) Ticks(low, high float64) (ticks []plot.Tick) {
	const about = 6
	if !(high > low) {
		return nil
	}
	unit := math.Pow(10, math.Floor(math.Log10((high-low)/about)))
	step := unit
	for _, n := range []float64{2, 5, 10} {
		if (high-low)/step > about+1 {
			step = n * unit
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		label := strconv.FormatFloat(math.Round(i*step*1e6)/1e6, 'f', -1, 64)
		ticks = append(ticks, plot.Tick{Value: i * step, Label: label})
	}
	return ticks
}

// addRates draws a line for each flow.
func addRates(p *plot.Plot, r *congestion.Result) error {
	flows := len(r.Samples[0].Rates)
	for f := range flows {
		var at plotter.XYs
		for i := 0; i+smoothed <= len(r.Samples); i += smoothed {
			mean := 0.0
			for _, s := range r.Samples[i:][:smoothed] {
				mean += s.Rates[f] / smoothed
			}
			at = append(at, plotter.XY{X: float64(r.Samples[i].At) / 1e6, Y: mean})
		}
		line, err := plotter.NewLine(at)
		if err != nil {
			return err
		}
		line.Color, line.Width = colours[f%len(colours)], vg.Points(1.1)
		if flows > len(colours) {
			line.Width = vg.Points(0.5)
		}
		p.Add(line)
	}
	p.Y.Min = 0
	return nil
}

// addQueue draws the queue, and from where on frames are marked.
func addQueue(p *plot.Plot, r *congestion.Result) error {
	var at plotter.XYs
	for _, s := range r.Samples {
		at = append(at, plotter.XY{X: float64(s.At) / 1e6, Y: float64(s.Queue) / 1e3})
	}
	line, err := plotter.NewLine(at)
	if err != nil {
		return err
	}
	line.Color, line.Width = colours[0], vg.Points(1.1)
	p.Add(line)
	const kmax = congestion.BarQueue / 1e3
	limit, err := plotter.NewLine(plotter.XYs{
		{X: at[0].X, Y: kmax}, {X: at[len(at)-1].X, Y: kmax},
	})
	if err != nil {
		return err
	}
	limit.Color, limit.Dashes = grey, []vg.Length{vg.Points(5), vg.Points(3)}
	p.Add(limit)
	p.Legend.Add("Kmax", limit)
	p.Y.Min = 0
	return nil
}
