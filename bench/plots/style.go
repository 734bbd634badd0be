package main

import (
	"fmt"
	"image/color"
	"math"
	"os"
	"slices"
	"strconv"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	_ "gonum.org/v1/plot/vg/vgimg" // PNG
	_ "gonum.org/v1/plot/vg/vgsvg" // SVG
)

// Sizes of a panel, and of the text in it.
const (
	panelWidth  = 4.1 * vg.Inch
	panelHeight = 3.4 * vg.Inch
	margin      = 0.12 * vg.Inch
	textSize    = font.Length(10)
	smallSize   = font.Length(9)
)

// ink is how a series is drawn. Colours are those of Okabe and Ito, which people tell apart who
// see colours differently; marks and dashes tell them apart without.
type ink struct {
	colour color.Color
	glyph  draw.GlyphDrawer
	dashed bool
}

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

// The inks. A protocol has the same one in every plot.
var (
	black  = ink{colour: rgb(0x222222), glyph: draw.CircleGlyph{}}
	orange = ink{colour: rgb(0xe69f00), glyph: draw.BoxGlyph{}}
	sky    = ink{colour: rgb(0x56b4e9), glyph: draw.TriangleGlyph{}}
	green  = ink{colour: rgb(0x009e73), glyph: draw.PyramidGlyph{}}
	blue   = ink{colour: rgb(0x0072b2), glyph: draw.CircleGlyph{}}
	red    = ink{colour: rgb(0xd55e00), glyph: draw.SquareGlyph{}}
	purple = ink{colour: rgb(0xcc79a7), glyph: draw.RingGlyph{}}

	paper = rgb(0xffffff) // also where the page is dark
	faint = rgb(0xdddddd)
)

// inks of the variants, by their names.
var inks = map[string]ink{
	"ours": black, "eager": orange, "provision": blue, "get": red, "put": green, "frag": purple,
}

// dash is an ink as a dashed line.
func (i ink) dash() ink {
	i.dashed = true
	return i
}

// A panel is a plot. Of a logarithmic axis the plot has the logarithms to base 2 of what is drawn:
// a scale of the plot would put the label of the axis out of it.
type panel struct {
	*plot.Plot
	xLog, yLog bool
	wide       bool // the figure has room for many bars and a legend beside them
}

func init() { plot.DefaultFont = font.Font{Typeface: "Liberation", Variant: "Sans"} }

// newPanel is an empty one.
func newPanel(title, x, y string) *panel {
	p := plot.New()
	p.BackgroundColor = paper
	p.Title.Text = title
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text, p.Y.Label.Text = x, y
	titles := []*text.Style{&p.Title.TextStyle, &p.X.Label.TextStyle, &p.Y.Label.TextStyle}
	for _, s := range titles {
		s.Font.Size = textSize
		s.Font.Variant = "Sans"
	}
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		a.Tick.Label.Font.Size, a.Tick.Label.Font.Variant = smallSize, "Sans"
		a.Padding = vg.Points(4)
	}
	p.Legend.TextStyle.Font.Size, p.Legend.TextStyle.Font.Variant = smallSize, "Sans"
	p.Legend.Padding = vg.Points(2)
	p.Legend.ThumbnailWidth = 0.35 * vg.Inch
	grid := plotter.NewGrid()
	grid.Horizontal.Color, grid.Vertical.Color = faint, faint
	p.Add(grid)
	p.X.Tick.Marker, p.Y.Tick.Marker = even{}, even{}
	return &panel{Plot: p}
}

// line adds a series, and its name to the legend.
func (p *panel) line(name string, i ink, at plotter.XYs) error {
	if len(at) == 0 {
		return nil
	}
	line, points, err := plotter.NewLinePoints(p.place(at))
	if err != nil {
		return err
	}
	line.Color, line.Width = i.colour, vg.Points(1.6)
	if i.dashed {
		line.Dashes = []vg.Length{vg.Points(5), vg.Points(3)}
	}
	points.Color, points.Shape, points.Radius = i.colour, i.glyph, vg.Points(3)
	p.Add(line, points)
	if name != "" {
		p.Legend.Add(name, line, points)
	}
	return nil
}

// place is where points are in the plot.
func (p *panel) place(at plotter.XYs) plotter.XYs {
	placed := slices.Clone(at)
	for i := range placed {
		if p.xLog {
			placed[i].X = math.Log2(placed[i].X)
		}
		if p.yLog {
			placed[i].Y = math.Log2(placed[i].Y)
		}
	}
	return placed
}

// logX and logY make an axis logarithmic, in steps that are named by a function. They go before
// what is drawn.
func (p *panel) logX(base float64, name func(float64) string) {
	p.xLog, p.X.Tick.Marker = true, powers{base, name}
}

func (p *panel) logY(base float64, name func(float64) string) {
	p.yLog, p.Y.Tick.Marker = true, powers{base, name}
}

// headroom makes the vertical axis so much longer, for a legend.
func (p *panel) headroom(by float64) {
	if p.yLog {
		p.Y.Max += math.Log2(by)
	} else {
		p.Y.Max *= by
	}
}

// powers are the ticks at the powers of a number.
type powers struct {
	base float64
	name func(float64) string
}

// Ticks implements plot.Ticker.
func (t powers) Ticks(low, high float64) []plot.Tick {
	const slack = 1e-6
	step := math.Log2(t.base)
	var ticks []plot.Tick
	for i := math.Ceil(low/step - slack); i*step <= high+slack; i++ {
		ticks = append(ticks, plot.Tick{Value: i * step, Label: t.name(math.Pow(t.base, i))})
	}
	return ticks
}

// even are the usual ticks, without zeros behind the point.
type even struct{}

// Ticks implements plot.Ticker.
func (even) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = plain(ticks[i].Value)
		}
	}
	return ticks
}

// byteName names a number of bytes.
func byteName(v float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if v >= unit.size*0.999 {
			return fmt.Sprintf("%.3g %s", v/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.3g B", v)
}

// plain names a number.
func plain(v float64) string { return strconv.FormatFloat(math.Round(v*1e6)/1e6, 'f', -1, 64) }

// save writes panels beside each other.
func save(name, format string, panels []*panel) (err error) {
	width := panelWidth * vg.Length(len(panels))
	if panels[0].wide {
		width *= 1.5
	}
	canvas, err := draw.NewFormattedCanvas(width, panelHeight, format)
	if err != nil {
		return err
	}
	whole := draw.New(canvas)
	whole.SetColor(paper)
	whole.Fill(whole.Rectangle.Path())
	rows := [][]*plot.Plot{{}}
	for _, p := range panels {
		rows[0] = append(rows[0], p.Plot)
	}
	tiles := draw.Tiles{
		Rows: 1, Cols: len(panels), PadX: 3 * margin,
		PadTop: margin, PadBottom: margin, PadLeft: margin, PadRight: 2 * margin,
	}
	for i, c := range plot.Align(rows, tiles, whole)[0] {
		rows[0][i].Draw(c)
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := canvas.WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// plain3 names a number by three digits.
func plain3(v float64) string {
	if v >= 1000 {
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.3g", v)
}
