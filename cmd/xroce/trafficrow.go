package main

import (
	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/gen"
)

// trafficHeader prints the head of the rows, if there are to be some.
func (a *app) trafficHeader(interval float64, sink bool) {
	if interval == 0 {
		return
	}
	a.printf("%-15s %12s %14s %14s", "interval [s]", "frames", "rate", "on the wire")
	if sink {
		a.printf(" %10s", "lost")
	}
	a.printf("\n")
}

// trafficRow prints what came of an interval.
func (a *app) trafficRow(r traffic.Row, sink bool) {
	length := seconds(r.To - r.From)
	if length <= 0 {
		return
	}
	a.printf("%7.2f-%-7.2f %12d %14s %14s", seconds(r.From), seconds(r.To), r.Frames,
		metric(float64(r.Frames)/length, "pps"), metric(layer1(r.Frames, r.Bytes)/length, "bit/s"))
	if sink {
		a.printf(" %10d", r.Lost)
	}
	a.printf("\n")
}

// layer1 is how many bits frames have on the wire.
func layer1(frames, bytes uint64) float64 {
	return 8 * float64(bytes+gen.Layer1Overhead*frames)
}
