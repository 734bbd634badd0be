package main

import (
	"gonum.org/v1/plot/plotter"

	"xroce/bench/model"
	"xroce/bench/result"
	"xroce/roce/clock"
	"xroce/roce/msg"
)

// What goes over the rails of the plot.
const (
	railMessages = 160
	railLength   = 256 << 10
	railCut      = railMessages / 2
)

// railPanels have what has come over one rail, over two, and over two of which one is cut.
func railPanels(d *result.Document) ([]*panel, error) {
	costs, err := costsOf(d)
	if err != nil {
		return nil, err
	}
	costs.Delay = 5 * clock.Microsecond
	p := newPanel("Messages of 256 KiB by get, links of 5 µs", "time, ms", "received, MiB")
	for _, v := range []struct {
		name       string
		ink        ink
		rails, cut int
	}{
		{"one rail", red, 1, 0},
		{"two rails", blue, 2, 0},
		{"two, one of which is cut half way", green.dash(), 2, railCut},
	} {
		costs.Rails = v.rails
		w, err := model.New(msg.Config{}, costs, 1)
		if err != nil {
			return nil, err
		}
		came, err := w.Pour(railMessages, railLength, 8, msg.Get, v.cut)
		w.Close()
		if err != nil {
			return nil, err
		}
		at := plotter.XYs{{}}
		for i, when := range came {
			if (i+1)%10 == 0 {
				at = append(at, plotter.XY{
					X: float64(when) / 1e6, Y: float64((i+1)*railLength) / (1 << 20),
				})
			}
		}
		if err := p.line(v.name, v.ink, at); err != nil {
			return nil, err
		}
	}
	p.Legend.Top, p.Legend.Left = true, true
	p.headroom(1.4)
	return []*panel{p}, nil
}
