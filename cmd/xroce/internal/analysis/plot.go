package analysis

import (
	"fmt"
	"html/template"
	"math"
	"strings"
	"time"

	"xroce/roce/analyze"
	"xroce/roce/clock"
)

// Sizes of a plot in pixels: of the whole, and what is left for the names of the axes.
const (
	width, height = 640, 220
	left, bottom  = 70, 34
	right, top    = 10, 12
)

// A plot is a picture that is being drawn. Both axes begin at 0.
type plot struct {
	b          strings.Builder
	xMax, yMax float64
	name       string
}

// newPlot begins one. y prints values at the axis, which are whole numbers where whole says so.
func newPlot(name string, xMax, yMax float64, whole bool, y func(float64) string) *plot {
	p := &plot{xMax: xMax, yMax: yMax, name: name}
	if p.xMax <= 0 {
		p.xMax = 1
	}
	if p.yMax <= 0 {
		p.yMax = 1
	}
	fmt.Fprintf(&p.b, `<svg viewBox="0 0 %d %d" role="img"><title>%s</title>`, width, height,
		template.HTMLEscapeString(name))
	for _, v := range ticks(0, p.yMax, whole) {
		fmt.Fprintf(&p.b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`+
			`<text class="y" x="%d" y="%.1f">%s</text>`, left, width-right, p.y(v), p.y(v), left-6,
			p.y(v)+4, template.HTMLEscapeString(y(v)))
	}
	return p
}

// maxTicks is how many values an axis has at most.
const maxTicks = 6

// ticks are round values from low to high: multiples of 1, 2 or 5 times a power of ten.
func ticks(low, high float64, whole bool) (values []float64) {
	step := math.Pow10(int(math.Floor(math.Log10((high - low) / maxTicks))))
	if whole {
		step = max(step, 1)
	}
	for _, factor := range []float64{2, 2.5, 2} { // 1, 2, 5, 10
		if (high-low)/step >= maxTicks {
			step *= factor
		}
	}
	for i := math.Ceil(low / step); i*step <= high; i++ {
		values = append(values, i*step)
	}
	return values
}

// mark writes a value below the x axis. What would not fit to the right of its place ends there.
func (p *plot) mark(at float64, text string) {
	class, x := "x", p.x(at)
	if x > width-right-20 {
		class, x = "y", width-right
	}
	fmt.Fprintf(&p.b, `<text class="%s" x="%.1f" y="%d">%s</text>`, class, x, height-bottom+16,
		template.HTMLEscapeString(text))
}

// times writes times below the x axis: how much later than a beginning, which the label names.
func (p *plot) times() {
	for _, v := range ticks(0, p.xMax, false) {
		p.mark(v, seconds(v))
	}
}

func (p *plot) x(v float64) float64 { return left + v/p.xMax*(width-left-right) }

func (p *plot) y(v float64) float64 { return height - bottom - v/p.yMax*(height-bottom-top) }

// bar draws one from x1 to x2.
func (p *plot) bar(class string, x1, x2, from, to float64) {
	fmt.Fprintf(&p.b, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, class,
		p.x(x1), p.y(to), max(p.x(x2)-p.x(x1), 1.5), max(p.y(from)-p.y(to), 0))
}

// dot draws a point.
func (p *plot) dot(class string, x, y, r float64) {
	fmt.Fprintf(&p.b, `<circle class="%s" cx="%.2f" cy="%.2f" r="%g"/>`, class, p.x(x), p.y(y), r)
}

// label says what the x axis is.
func (p *plot) label(text string) {
	fmt.Fprintf(&p.b, `<text class="x" x="%d" y="%d">%s</text>`, (width+left-right)/2, height-4,
		template.HTMLEscapeString(text))
}

// done ends the picture. All text in it was escaped.
func (p *plot) done() template.HTML { return template.HTML(p.b.String() + "</svg>") }

// seconds prints a time at an axis, in nanoseconds.
func seconds(v float64) string {
	if v >= math.MaxInt64 { // from the first time that there is to the last it is twice that
		return fmt.Sprintf("%.0fh", v/float64(time.Hour))
	}
	return time.Duration(math.Round(v)).String()
}

// since names where an axis begins.
func since(at clock.Time) string {
	if at <= 0 {
		return "the first packet of the capture"
	}
	return rounded(at) + " of the capture"
}

// rounded prints a time with three digits.
func rounded(t clock.Time) string {
	unit := clock.Time(1)
	for t/unit >= 1000 { // unit*1000 may be more than a time can be
		unit *= 10
	}
	return time.Duration(t).Round(time.Duration(unit)).String()
}

// apart is how far an axis is from one time to another, which is not before it. The difference may
// be more than a time can be.
func apart(from, to clock.Time) float64 { return float64(uint64(to) - uint64(from)) }

// throughput draws bits per second over time: new data, and what was sent again on top of it.
func throughput(d *analyze.Direction) template.HTML {
	if len(d.New.Bytes) == 0 {
		return ""
	}
	perSecond := func(s *analyze.Series, i int) float64 {
		return float64(s.Bytes[i]) * 8 * float64(clock.Second) / float64(s.Width)
	}
	drawn := []struct {
		series *analyze.Series
		class  string
	}{{&d.New, "new"}, {&d.Resend, "again"}}
	begin := d.New.Start
	if len(d.Resend.Bytes) > 0 {
		begin = min(begin, d.Resend.Start)
	}
	highest, end := 0.0, 0.0
	for _, s := range drawn {
		for i := range s.series.Bytes {
			highest = max(highest, perSecond(s.series, i))
		}
		if n := len(s.series.Bytes); n > 0 {
			end = max(end, apart(begin, s.series.Start)+float64(s.series.Width)*float64(n))
		}
	}
	if highest == 0 {
		return ""
	}
	p := newPlot("Throughput", end, highest, false, rate)
	p.times()
	for _, s := range drawn {
		for i, n := range s.series.Bytes {
			if n > 0 {
				width := float64(s.series.Width)
				at := apart(begin, s.series.Start) + float64(i)*width
				p.bar(s.class, at, at+width, 0, perSecond(s.series, i))
			}
		}
	}
	p.label("time since " + since(begin))
	return p.done()
}

// marks are the classes of points.
var marks = [...]string{
	analyze.Sent: "new", analyze.Again: "again", analyze.Acked: "acked", analyze.Naked: "naked",
}

// psns draws the PSNs over time.
func psns(d *analyze.Direction) template.HTML {
	if len(d.PSNs) < 2 {
		return ""
	}
	first, last, low, high := d.PSNs[0].At, d.PSNs[0].At, int32(0), int32(1)
	for _, x := range d.PSNs {
		first, last = min(first, x.At), max(last, x.At)
		low, high = min(low, x.PSN), max(high, x.PSN)
	}
	p := newPlot("PSNs", apart(first, last), float64(high-low), true,
		func(v float64) string { return fmt.Sprintf("%+.0f", v+float64(low)) })
	p.times()
	for _, rare := range [...]bool{false, true} { // those on top of the others
		for _, x := range d.PSNs {
			if is := x.Mark == analyze.Again || x.Mark == analyze.Naked; is == rare {
				r := 1.6
				if rare {
					r = 2.6
				}
				p.dot(marks[x.Mark&3], apart(first, x.At), float64(x.PSN-low), r)
			}
		}
	}
	p.label("PSNs from the first one on, and time since " + since(first))
	return p.done()
}

// histogram draws how many operations took how long. Each bar is a quarter of a power of two.
func histogram(l *analyze.Latency) template.HTML {
	if l == nil || len(l.Bars) < 2 {
		return ""
	}
	highest := uint32(0)
	for _, bar := range l.Bars {
		highest = max(highest, bar.Count)
	}
	p := newPlot("Latency", float64(len(l.Bars)), float64(highest), true,
		func(v float64) string { return fmt.Sprintf("%.3g", v) })
	every := (len(l.Bars) + maxTicks - 1) / maxTicks
	for i, bar := range l.Bars {
		p.bar("new", float64(i)+0.05, float64(i)+0.95, 0, float64(bar.Count))
		if i%every == 0 {
			p.mark(float64(i)+0.5, rounded(bar.UpTo))
		}
	}
	p.label("how many took at most so long; spans without any are left out")
	return p.done()
}
