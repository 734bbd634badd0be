package main

import (
	"context"
	"errors"
	"fmt"

	"xroce/bench/result"
	"xroce/bench/stage"
)

// Raw frames over AF_XDP: what the rings cost, before any protocol.

// rawFrames are the frame sizes measured: the smallest, the usual largest, and
// the largest of path MTU 4096, which takes two chunks in each direction.
var rawFrames = []struct{ size, mtu int }{{64, 1500}, {1500, 1500}, {4174, 4200}}

// oneChunk is the longest frame that arrives in one 4096-byte chunk in copy mode.
const oneChunk = 4096 - 256

// errNothing means that a run ended without a packet or a sample.
var errNothing = errors.New("nothing arrived in the window")

func rawSockets(size int) result.Sockets {
	return result.Sockets{
		Frame: size, RxFrames: 8192, TxFrames: 2048, Batch: 64, Budget: 256, SendBuf: 4 << 20,
	}
}

// rawCases makes a case of each frame size. run measures a backend.
func rawCases(kind, verb string,
	run func(ctx context.Context, p *place, who backend) (measurement, error),
) []benchCase {
	var cases []benchCase
	for _, f := range rawFrames {
		c := benchCase{
			name:     fmt.Sprintf("raw-%s-%d", kind, f.size),
			title:    fmt.Sprintf("%s %d-byte frames", verb, f.size),
			unit:     "packets/s",
			lossless: true,
			control:  libxdp.String(),
			stage:    stage.Options{MTU: f.mtu, Threaded: true},
			sockets:  rawSockets(f.size),
			full:     f.size != 64 || kind == "fwd",
		}
		for _, who := range []backend{ours, libxdp, asavie} {
			v := variant{name: who.String(), needs: []backend{who}}
			if who == asavie && f.size > oneChunk {
				v.missing = "it has no multi-buffer frames"
			}
			v.run = func(ctx context.Context, p *place) (measurement, error) {
				return run(ctx, p, who)
			}
			c.variants = append(c.variants, v)
		}
		cases = append(cases, c)
	}
	return cases
}

// rawSendCases measure a sender; an XDP program counts and drops at the other
// end, the cheapest reader there is.
func rawSendCases() []benchCase {
	return rawCases("tx", "send",
		func(ctx context.Context, p *place, who backend) (measurement, error) {
			return p.stream(ctx, who, sink)
		})
}

// rawReceiveCases measure a receiver; the sender is ours for all of them.
func rawReceiveCases() []benchCase {
	return rawCases("rx", "receive",
		func(ctx context.Context, p *place, who backend) (measurement, error) {
			return p.stream(ctx, ours, who)
		})
}

// stream sends from A to B as fast as it goes and measures what arrives.
func (p *place) stream(ctx context.Context, sender, receiver backend) (measurement, error) {
	mode := "rx"
	if receiver == sink {
		mode = "sink"
	}
	return p.streamed(ctx, role{stage.A, sender, "tx"}, role{stage.B, receiver, mode})
}

// streamed measures what the second of two workers gets of what the first sends.
func (p *place) streamed(ctx context.Context, sender, receiver role) (measurement, error) {
	reports, err := p.play(ctx, sender, receiver)
	if err != nil {
		return measurement{}, err
	}
	m := measurement{
		value:   reports[1].PerSecond(),
		loss:    loss(reports[0].Total, reports[1].Total),
		workers: reports,
	}
	if m.value == 0 {
		return m, errNothing
	}
	return m, nil
}

// rawForwardCases measure who receives on B and sends back to A. The sender is
// ours for all of them and could send more than anyone forwards, but is held
// back; what comes back is counted in XDP.
func rawForwardCases() []benchCase {
	return rawCases("fwd", "send back",
		func(ctx context.Context, p *place, who backend) (measurement, error) {
			reports, err := p.play(ctx, role{stage.A, ours, "tx"},
				role{stage.B, who, "fwd"}, role{stage.A, sink, "sink"})
			if err != nil {
				return measurement{}, err
			}
			m := measurement{
				value:   reports[2].PerSecond(),
				loss:    loss(reports[0].Total, reports[2].Total),
				workers: reports,
			}
			if m.value == 0 {
				return m, errNothing
			}
			return m, nil
		})
}
