package analysis

import (
	"fmt"
	"html/template"
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

// A plot is a picture that is being drawn.
type plot struct {
	b          strings.Builder
	xMin, xMax float64
	yMax       float64
	name       string
}

// newPlot begins one. x and y print values at the axes.
func newPlot(name string, xMin, xMax, yMax float64, x, y func(float64) string) *plot {
	p := &plot{xMin: xMin, xMax: xMax, yMax: yMax, name: name}
	if p.xMax <= p.xMin {
		p.xMax = p.xMin + 1
	}
	if p.yMax <= 0 {
		p.yMax = 1
	}
	fmt.Fprintf(&p.b, `<svg viewBox="0 0 %d %d" role="img"><title>%s</title>`, width, height,
		template.HTMLEscapeString(name))
	const ticks = 4
	for i := range ticks + 1 {
		part := float64(i) / ticks
		at := height - bottom - part*(height-bottom-top)
		fmt.Fprintf(&p.b, `<line class="grid" x1="%d" x2="%d" y1="%.1f" y2="%.1f"/>`+
			`<text class="y" x="%d" y="%.1f">%s</text>`, left, width-right, at, at, left-6, at+4,
			template.HTMLEscapeString(y(p.yMax*part)))
		at = left + part*(width-left-right)
		class := "x"
		if i == ticks {
			class = "y" // it ends there
		}
		fmt.Fprintf(&p.b, `<text class="%s" x="%.1f" y="%d">%s</text>`, class, at,
			height-bottom+16, template.HTMLEscapeString(x(p.xMin+(p.xMax-p.xMin)*part)))
	}
	return p
}

func (p *plot) x(v float64) float64 {
	return left + (v-p.xMin)/(p.xMax-p.xMin)*(width-left-right)
}

func (p *plot) y(v float64) float64 { return height - bottom - v/p.yMax*(height-bottom-top) }

// bar draws one from x1 to x2.
func (p *plot) bar(class string, x1, x2, from, to float64) {
	fmt.Fprintf(&p.b, `<rect class="%s" x="%.2f" y="%.2f" width="%.2f" height="%.2f"/>`, class,
		p.x(x1), p.y(to), max(p.x(x2)-p.x(x1), 0.7), max(p.y(from)-p.y(to), 0))
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

// seconds prints a time at an axis.
func seconds(v float64) string {
	t := clock.Time(v)
	unit := clock.Time(1)
	for unit*1000 < t {
		unit *= 10
	}
	return time.Duration((t + unit/2) / unit * unit).String()
}

// throughput draws bits per second over time: new data, and what was sent again on top of it.
func throughput(d *analyze.Direction) template.HTML {
	if len(d.New.Bytes) == 0 {
		return ""
	}
	perSecond := func(s *analyze.Series, i int) float64 {
		return float64(s.Bytes[i]) * 8 * float64(clock.Second) / float64(s.Width)
	}
	highest, end := 0.0, d.New.Start
	for _, s := range []*analyze.Series{&d.New, &d.Resend} {
		for i := range s.Bytes {
			highest = max(highest, perSecond(s, i))
		}
		if n := len(s.Bytes); n > 0 {
			end = max(end, s.Start+s.Width*clock.Time(n))
		}
	}
	if highest == 0 {
		return ""
	}
	p := newPlot("Throughput", float64(d.New.Start), float64(end), highest, seconds, rate)
	for _, s := range []struct {
		series *analyze.Series
		class  string
	}{{&d.New, "new"}, {&d.Resend, "again"}} {
		for i, n := range s.series.Bytes {
			if n > 0 {
				at := float64(s.series.Start + clock.Time(i)*s.series.Width)
				p.bar(s.class, at, at+float64(s.series.Width), 0, perSecond(s.series, i))
			}
		}
	}
	p.label("time since the first packet of the capture")
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
	p := newPlot("PSNs", float64(first), float64(last), float64(high-low), seconds,
		func(v float64) string { return fmt.Sprintf("%+.0f", v+float64(low)) })
	for _, rare := range [...]bool{false, true} { // those on top of the others
		for _, x := range d.PSNs {
			if is := x.Mark == analyze.Again || x.Mark == analyze.Naked; is == rare {
				r := 1.6
				if rare {
					r = 2.6
				}
				p.dot(marks[x.Mark&3], float64(x.At), float64(x.PSN-low), r)
			}
		}
	}
	p.label("PSNs from the first one on: sent, acknowledged, refused, sent again")
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
	at := func(v float64) string {
		i := min(int(v), len(l.Bars)-1)
		return span(l.Bars[i].UpTo)
	}
	p := newPlot("Latency", 0, float64(len(l.Bars)), float64(highest), at,
		func(v float64) string { return fmt.Sprintf("%.3g", v) })
	for i, bar := range l.Bars {
		p.bar("new", float64(i)+0.05, float64(i)+0.95, 0, float64(bar.Count))
	}
	p.label("how long they took, shortest first; spans without any are left out")
	return p.done()
}
