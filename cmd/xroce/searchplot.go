package main

import (
	"bytes"
	"fmt"
	"io"
)

// The picture of a search: a bar for each size, in pixels.
const (
	plotHeight = 300
	plotMargin = 60
	plotBar    = 60
	plotGap    = 20
	plotWidth  = 580 // at the least, for what is above the bars
)

// draw draws what a search found as SVG: for each size the rate without loss, behind it, paler,
// what was offered, and a line across for each trial, by what came of it.
func (r *searchReport) draw(w io.Writer) error {
	most := 0.0
	for _, row := range r.Rows {
		most = max(most, row.Most, row.PPS)
		for _, t := range row.Tried {
			most = max(most, t.Rate)
		}
	}
	width := max(plotWidth, 2*plotMargin+len(r.Rows)*(plotBar+plotGap))
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" `+
		`font-family="sans-serif" font-size="12" text-anchor="middle">`+"\n", width,
		plotHeight+2*plotMargin)
	fmt.Fprintf(&b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	fmt.Fprintf(&b, `<text x="%d" y="20" font-size="14">Largest rate with at most %g %% loss, by `+
		`bytes of a frame</text>`+"\n", width/2, r.MaxLoss)
	fmt.Fprintf(&b, `<text x="%d" y="38" fill="#555">pale: offered; lines: trials, good or not `+
		`(red); below: mean and largest latency</text>`+"\n", width/2)
	base := plotHeight + plotMargin
	for i, row := range r.Rows {
		x := plotMargin + i*(plotBar+plotGap)
		bar := func(v float64, fill string) int {
			h := 0
			if most > 0 {
				h = int(v / most * plotHeight)
			}
			fmt.Fprintf(&b, `<rect x="%d" y="%d" width="%d" height="%d" fill="%s"/>`+"\n", x,
				base-h, plotBar, h, fill)
			return base - h
		}
		bar(row.Most, "#c6d8ea")
		top := bar(row.PPS, "#2f6ea5")
		for _, t := range row.Tried {
			y := base - int(t.Rate/most*plotHeight)
			fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="%s"/>`+"\n", x, y,
				x+plotBar, y, map[bool]string{true: "black", false: "#c0392b"}[t.Good])
		}
		fmt.Fprintf(&b, `<text x="%d" y="%d" stroke="white" stroke-width="4" `+
			`paint-order="stroke">%s</text>`+"\n", x+plotBar/2, top-6, metric(row.PPS, "pps"))
		fmt.Fprintf(&b, `<text x="%d" y="%d">%d</text>`+"\n", x+plotBar/2, base+18, row.Size)
		if l := row.Latency; l != nil {
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#555">%s</text>`+"\n", x+plotBar/2,
				base+36, metricTime(l.Mean))
			fmt.Fprintf(&b, `<text x="%d" y="%d" fill="#555">%s</text>`+"\n", x+plotBar/2,
				base+52, metricTime(l.Max))
		}
	}
	fmt.Fprintf(&b, `<line x1="%d" y1="%d" x2="%d" y2="%d" stroke="black"/>`+"\n</svg>\n",
		plotMargin/2, base, width-plotMargin/2, base)
	_, err := w.Write(b.Bytes())
	return err
}

// metricTime prints nanoseconds in three digits.
func metricTime(ns uint32) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.3g s", float64(ns)/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.3g ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%.3g µs", float64(ns)/1e3)
}
