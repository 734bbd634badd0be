package main

import (
	"context"
	"fmt"

	"xroce/bench/stage"
)

// rawRTTCases measure one frame there and back, both ends spinning, against UDP
// sockets that spin or sleep. NAPI runs in the sender's own call here: a NAPI
// thread would have to push the spinning reader off its processor first.
func rawRTTCases() []benchCase {
	const size = 64
	c := benchCase{
		name:          fmt.Sprintf("raw-rtt-%d", size),
		title:         fmt.Sprintf("half round trip of %d-byte frames, median", size),
		unit:          "ns",
		lowerIsBetter: true,
		control:       libxdp.String(),
		stage:         stage.Options{MTU: 1500},
		sockets:       rawSockets(size),
	}
	for _, v := range []struct {
		name   string
		who    backend
		suffix string
	}{
		{ours.String(), ours, ""},
		{libxdp.String(), libxdp, ""},
		{"UDP sockets, spinning", sockets, "-spin"},
		{"UDP sockets, blocking", sockets, ""},
	} {
		c.variants = append(c.variants, variant{
			name: v.name, needs: []backend{v.who},
			run: func(ctx context.Context, p *place) (measurement, error) {
				return p.pingPong(ctx, v.who, "ping"+v.suffix, "echo"+v.suffix)
			},
		})
	}
	return []benchCase{c}
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
