package main

import (
	"context"
	"slices"

	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// A benchCase is one kind of work and the variants that do it. The first variant
// is ours. One file makes the cases of one kind.
type benchCase struct {
	name          string // for --only; the part before the last dash names the file
	title         string
	unit          string
	lowerIsBetter bool
	lossless      bool   // loss voids a row
	control       string // variant that must hold still; ours when it is not there
	stage         stage.Options
	sockets       result.Sockets
	variants      []variant
}

// A variant is one way to do the work of a case.
type variant struct {
	name    string
	needs   []backend // which must be there
	missing string    // why the variant can never run in this case, or ""
	run     func(context.Context, *place) (measurement, error)
}

// A measurement is what one run of a variant found.
type measurement struct {
	value   float64 // in the unit of the case
	loss    float64 // fraction of the packets sent that did not arrive
	workers []worker.Report
}

// A place is where a variant runs: the harness, the case and its stage.
type place struct {
	*bench
	*stage.Stage
	c *benchCase
}

// allCases is every case, in the order of running.
func allCases() []benchCase {
	return slices.Concat(rawSendCases(), rawReceiveCases(), rawForwardCases(), rawRTTCases(),
		rcWriteCases(), rcSendCases(), rcRTTCases())
}
