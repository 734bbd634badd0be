package main

import (
	"context"
	"slices"

	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// A benchCase is one kind of work and the variants that do it. One file makes the
// cases of one kind.
//
// The first variant is ours and is compared with each of the others, unless there
// is a reference: then the variants are one work under different conditions, and
// each is compared with that one.
type benchCase struct {
	name          string // for --only
	title         string
	unit          string
	lowerIsBetter bool
	lossless      bool   // loss voids a row
	control       string // variant that must hold still; ours when it is not there
	reference     string // variant that the others are compared with, "" for the first with all
	axis          string // what variant.at is, in words
	full          bool   // measured with --full or when named only
	maxRounds     int    // no more than so many, 0 for no limit
	stage         stage.Options
	sockets       result.Sockets
	variants      []variant
}

// A variant is one way to do the work of a case.
type variant struct {
	name    string
	needs   []backend // which must be there
	missing string    // why the variant can never run in this case, or ""
	at      float64   // where on the axis of the case
	offAxis bool      // nowhere on it
	run     runFunc
}

// A runFunc measures a variant once.
type runFunc func(context.Context, *place) (measurement, error)

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
	c    *benchCase
	tune func(stage.Side, *worker.Options) // what is special to the variant, or nil
}

// with is run with options that are special to a variant, after those that whoever runs that has.
func (run runFunc) with(tune func(stage.Side, *worker.Options)) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		tuned := *p
		tuned.tune = func(side stage.Side, o *worker.Options) {
			if p.tune != nil {
				p.tune(side, o)
			}
			tune(side, o)
		}
		return run(ctx, &tuned)
	}
}

// allCases is every case, in the order of running: what the goals are about first.
func allCases() []benchCase {
	return slices.Concat(sendCases(), writeCases(), rttCases(), callCases(), goodputCases(),
		messageCases(), layoutCases(), turnCases(), manyCases(), lossCases(), pagingCases(),
		microCases(), transmitCases(), configureCases(), keyCases(), sizeCases(), rawSendCases(),
		rawReceiveCases(), rawForwardCases(), rawRTTCases(), pktgenCases(), rateCases(),
		sinkCases(), captureCases(), decodeCases(), tunnelCases())
}

// rounds is how often each variant of the case runs.
func (c *benchCase) rounds(pairs int) int {
	if c.maxRounds > 0 {
		return min(pairs, c.maxRounds)
	}
	return pairs
}
