package main

import (
	"context"
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// callQPs is how many connections calls are made over, each with one under way.
const callQPs = 16

// callCases measure how many short requests are answered in a second, with and without
// acknowledges that ride on requests and answers. Both ends spin, as for round trips.
func callCases() []benchCase {
	c := benchCase{
		name: fmt.Sprintf("rpc-%d", shortLength),
		title: fmt.Sprintf("requests of %d bytes answered, SEND each way, one under way on each "+
			"of %d connections", shortLength, callQPs),
		unit:    "calls/s",
		stage:   stage.Options{MTU: 1500},
		sockets: shortSockets(load.RCOverhead),
		variants: []variant{
			{name: rc.String(), needs: []backend{rc}, run: called("call", "answer")},
			{
				name: piggybacked, needs: []backend{rc},
				run: called("call-piggyback", "answer-piggyback"),
			},
		},
	}
	c.control = c.variants[0].name
	c.reference = c.variants[0].name
	turns := c
	turns.name = fmt.Sprintf("rpc-turns-%d", shortLength)
	turns.title += ", in turn with as many others"
	turns.unit = "of the others' rate"
	turns.variants = []variant{
		{name: rc.String(), needs: []backend{rc}, run: calledInTurn("call-same", "answer")},
		{
			name: piggybacked, needs: []backend{rc},
			run: calledInTurn("call-halves", "answer-halves"),
		},
	}
	return []benchCase{c, turns}
}

// calledInTurn measures the rate of calls over some connections by that over others.
func calledInTurn(call, answer string) runFunc {
	return ratioOf(role{stage.A, rc, call}, role{stage.B, rc, answer}).
		with(func(_ stage.Side, o *worker.Options) { o.QPs = 2 * callQPs })
}

// ratioOf measures what the first worker found to be the ratio of two rates.
func ratioOf(roles ...role) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		reports, err := p.play(ctx, roles...)
		if err != nil {
			return measurement{}, err
		}
		m := measurement{value: reports[0].Ratio, workers: reports}
		if m.value == 0 {
			return m, errNothing
		}
		return m, nil
	}
}

// called makes calls from one end to the other and counts those that were answered.
func called(call, answer string) runFunc {
	run := func(ctx context.Context, p *place) (measurement, error) {
		reports, err := p.play(ctx, role{stage.A, rc, call}, role{stage.B, rc, answer})
		if err != nil {
			return measurement{}, err
		}
		m := measurement{workers: reports}
		if reports[0].Seconds == 0 || reports[0].Packets == 0 {
			return m, errNothing
		}
		m.value = float64(reports[0].Packets) / reports[0].Seconds
		return m, nil
	}
	return runFunc(run).with(func(_ stage.Side, o *worker.Options) { o.QPs = callQPs })
}
