package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"

	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// xdpsockBudget is how many frames a send call takes where nobody asks for more, as xdpsock does
// not (kernel net/xdp/xsk.c TX_BATCH_SIZE).
const xdpsockBudget = 32

// pktgenCases measure the generator: frames that are made one by one, with a number and a time.
// The others send what they wrote once.
func pktgenCases() []benchCase {
	const size = 64
	raw := func(ctx context.Context, p *place) (measurement, error) {
		return p.stream(ctx, libxdp, sink)
	}
	return []benchCase{{
		name:     fmt.Sprintf("pktgen-%d", size),
		title:    fmt.Sprintf("generate %d-byte frames", size),
		unit:     "packets/s",
		lossless: true,
		control:  libxdp.String(),
		stage:    stage.Options{MTU: 1500, Threaded: true},
		sockets:  rawSockets(size),
		full:     true,
		variants: []variant{
			{name: ours.String(), needs: []backend{ours}, run: generated},
			{
				name: result.Pktgen, needs: []backend{command},
				run: countedInXDP(startPktgen),
			},
			{name: libxdp.String(), needs: []backend{libxdp}, run: raw},
			{
				name: result.Xdpsock, needs: []backend{libxdp},
				run: runFunc(raw).with(func(_ stage.Side, o *worker.Options) {
					o.Budget = xdpsockBudget
				}),
			},
			{
				name: result.Iperf3UDP, needs: []backend{iperf3},
				run: func(ctx context.Context, p *place) (measurement, error) {
					return p.iperf(ctx, parseIperfUDP, "-u", "-b", "0", "-l",
						strconv.Itoa(size-headersLen))
				},
			},
			{
				name: testpmd.String(), needs: []backend{testpmd},
				run: countedInXDP(startTestpmd),
			},
		},
	}}
}

// generated sends generated frames from A to B, where they are counted and dropped.
func generated(ctx context.Context, p *place) (measurement, error) {
	reports, err := p.play(ctx, role{stage.A, ours, "gen"}, role{stage.B, sink, "sink"})
	if err != nil {
		return measurement{}, err
	}
	m := measurement{
		value: reports[1].PerSecond(), loss: loss(reports[0].Total, reports[1].Total),
		workers: reports,
	}
	if m.value == 0 {
		return m, errNothing
	}
	return m, nil
}

// parseIperfUDP reads the client's JSON of datagrams: those that came, a second. What was lost
// does not void the row, because iperf3 does not wait for the receiver.
func parseIperfUDP(text []byte) (measurement, error) {
	var out struct {
		Error string
		End   struct {
			Sum struct {
				Packets uint64
				Lost    uint64 `json:"lost_packets"`
				Seconds float64
			}
		}
	}
	if err := json.Unmarshal(text, &out); err != nil {
		return measurement{}, fmt.Errorf("iperf3: %w", err)
	}
	sum := out.End.Sum
	switch {
	case out.Error != "":
		return measurement{}, fmt.Errorf("iperf3: %s", out.Error)
	case sum.Seconds == 0 || sum.Packets <= sum.Lost:
		return measurement{}, errNothing
	}
	came := sum.Packets - sum.Lost
	return measurement{value: float64(came) / sum.Seconds, workers: []worker.Report{{
		Packets: came, Seconds: sum.Seconds, Total: sum.Packets, Mode: "iperf3",
	}}}, nil
}
