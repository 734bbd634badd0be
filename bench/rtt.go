package main

import (
	"context"
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
)

// Half round trips. NAPI runs in the sender's own call here: a NAPI thread would
// have to push a spinning reader off its processor first.

// An exchange is one way to do a round trip: the modes of the end that asks and
// of the end that answers.
type exchange struct {
	name      string
	who       backend
	ask, echo string
}

// piggybacked are exchanges whose acknowledges ride on the messages.
const piggybacked = "ours, piggybacked ACKs"

// rttCases measure one short SEND there and back, both ends spinning, and both
// asleep until it comes.
func rttCases() []benchCase {
	spin := rttCase("rtt", "spinning", []exchange{
		{rc.String(), rc, "ping", "echo"},
		{piggybacked, rc, "ping-piggyback", "echo-piggyback"},
		{"ours, busy background loop", rc, "ping-busy", "echo-busy"},
		{rawName, ours, "ping", "echo"},
		{"UDP sockets, spinning", sockets, "ping-spin", "echo-spin"},
	})
	sleep := rttCase("rtt-sleep", "asleep in between", []exchange{
		{rc.String(), rc, "ping-sleep", "echo-sleep"},
		{rawName, ours, "ping-sleep", "echo-sleep"},
		{"UDP sockets, blocking", sockets, "ping", "echo"},
		{"ours, background loop", rc, "ping-loop", "echo-loop"},
	})
	return []benchCase{spin, sleep}
}

func rttCase(kind, how string, exchanges []exchange) benchCase {
	return benchCase{
		name: fmt.Sprintf("%s-%d", kind, shortLength),
		title: fmt.Sprintf("half round trip of %d-byte SENDs, %s, median",
			shortLength, how),
		unit:          "ns",
		lowerIsBetter: true,
		control:       rawName,
		stage:         stage.Options{MTU: 1500},
		sockets:       shortSockets(load.RCOverhead),
		variants:      exchangeVariants(exchanges),
	}
}

// rawRTTCases measure the same with the smallest frames, without a protocol.
func rawRTTCases() []benchCase {
	const size = 64
	return []benchCase{{
		name:          fmt.Sprintf("raw-rtt-%d", size),
		title:         fmt.Sprintf("half round trip of %d-byte frames, median", size),
		unit:          "ns",
		lowerIsBetter: true,
		full:          true,
		control:       libxdp.String(),
		stage:         stage.Options{MTU: 1500},
		sockets:       rawSockets(size),
		variants: exchangeVariants([]exchange{
			{ours.String(), ours, "ping", "echo"},
			{libxdp.String(), libxdp, "ping", "echo"},
			{"UDP sockets, spinning", sockets, "ping-spin", "echo-spin"},
			{"UDP sockets, blocking", sockets, "ping", "echo"},
		}),
	}}
}

func exchangeVariants(exchanges []exchange) []variant {
	var list []variant
	for _, e := range exchanges {
		list = append(list, variant{
			name: e.name, needs: []backend{e.who},
			run: func(ctx context.Context, p *place) (measurement, error) {
				return p.pingPong(ctx, e.who, e.ask, e.echo)
			},
		})
	}
	return list
}

// pingPong exchanges one frame at a time and measures half the median round trip.
func (p *place) pingPong(ctx context.Context, who backend, ask, answer string) (
	measurement, error,
) {
	reports, err := p.play(ctx, role{stage.A, who, ask}, role{stage.B, who, answer})
	if err != nil {
		return measurement{}, err
	}
	m := measurement{loss: loss(reports[0].Total, reports[1].Total), workers: reports}
	if reports[0].RTT == nil || reports[0].RTT.Samples == 0 {
		return m, errNothing
	}
	m.value = float64(reports[0].RTT.P50) / 2
	return m, nil
}
