package main

import (
	"context"
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
)

// crcName is the control of the single steps: it hardly depends on anything but
// the processor.
const crcName = "CRC-32 alone"

// microCases measure what package wire takes for a short packet, without a kernel.
func microCases() []benchCase {
	c := benchCase{
		name:          fmt.Sprintf("packet-%d", shortLength),
		title:         fmt.Sprintf("headers and ICRC of a packet with %d bytes", shortLength),
		unit:          "ns",
		lowerIsBetter: true,
		control:       crcName,
		reference:     crcName,
		stage:         stage.Options{MTU: 1500},
		sockets:       shortSockets(load.RCOverhead),
	}
	for _, step := range []struct{ name, mode string }{
		{"decode and check ICRC", "decode"}, {"write headers and ICRC", "seal"}, {crcName, "crc"},
	} {
		c.variants = append(c.variants, variant{
			name: step.name, needs: []backend{micro},
			run: func(ctx context.Context, p *place) (measurement, error) {
				return p.step(ctx, step.mode)
			},
		})
	}
	return []benchCase{c}
}

// step measures the time of a single step.
func (p *place) step(ctx context.Context, mode string) (measurement, error) {
	reports, err := p.play(ctx, role{stage.A, micro, mode})
	if err != nil {
		return measurement{}, err
	}
	m := measurement{workers: reports}
	if reports[0].Packets == 0 {
		return m, errNothing
	}
	m.value = 1e9 / reports[0].PerSecond()
	return m, nil
}
