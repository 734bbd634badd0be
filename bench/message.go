package main

import (
	"context"
	"fmt"

	"xroce/bench/load"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// Short messages over a reliable connection, as a rate.

const (
	rawName     = "raw AF_XDP"
	placedName  = "raw AF_XDP, copied and checked"
	shortLength = 64 // bytes of a short message
)

// shortSockets are for short messages whose packets have so many bytes beside
// them: raw frames are as long as those packets.
func shortSockets(overhead int) result.Sockets {
	s := rawSockets(shortLength + overhead)
	s.Message = shortLength
	return s
}

// sendCases measure the rate of short SENDs.
func sendCases() []benchCase {
	c := benchCase{
		name:    fmt.Sprintf("send-%d", shortLength),
		title:   fmt.Sprintf("SEND of %d bytes, one connection", shortLength),
		unit:    "messages/s",
		control: rawName,
		stage:   stage.Options{MTU: 1500, Threaded: true},
		sockets: shortSockets(load.RCOverhead),
	}
	c.variants = append([]variant{
		{name: rc.String(), needs: []backend{rc}, run: messages(rc, "send", "recv")},
		rawVariant(),
		placedVariant(),
	}, udpVariants(c.sockets)...)
	return []benchCase{c, untuned(c)}
}

// untuned is a case on a pair that is as veth makes it, in few rounds: what the settings of
// the stage are worth.
func untuned(c benchCase) benchCase {
	c.name += "-untuned"
	c.title += ", veth untuned"
	c.maxRounds = 3
	c.stage.Untuned = true
	c.variants = c.variants[:2:2] // us and raw frames
	return c
}

// writeCases measure the rate of short WRITEs.
func writeCases() []benchCase {
	return []benchCase{{
		name:    fmt.Sprintf("write-%d", shortLength),
		title:   fmt.Sprintf("WRITE of %d bytes, one connection", shortLength),
		unit:    "messages/s",
		control: rawName,
		stage:   stage.Options{MTU: 1500, Threaded: true},
		sockets: shortSockets(load.WriteOverhead),
		variants: []variant{
			{name: rc.String(), needs: []backend{rc}, run: written("write", "target")},
			rawVariant(),
		},
	}}
}

// rawVariant sends frames as long as the packets of the case.
func rawVariant() variant {
	return variant{
		name: rawName, needs: []backend{ours},
		run: func(ctx context.Context, p *place) (measurement, error) {
			return p.stream(ctx, ours, ours)
		},
	}
}

// placedVariant sends such frames with payloads that are gathered from memory, checked, and
// placed in memory: the limit of whoever does so.
func placedVariant() variant {
	return variant{
		name: placedName, needs: []backend{ours},
		run: func(ctx context.Context, p *place) (measurement, error) {
			return p.streamed(ctx,
				role{stage.A, ours, "tx-placed"}, role{stage.B, ours, "rx-placed"})
		},
	}
}

// udpVariants send datagrams with sendmmsg and recvmmsg: with as many bytes as a
// message, and with as many as make their frames as long as the case's.
func udpVariants(s result.Sockets) []variant {
	run := messages(sockets, "tx", "rx")
	return []variant{
		{name: "UDP sockets, batched", needs: []backend{sockets}, run: run},
		{
			name: "UDP sockets, same frame", needs: []backend{sockets},
			run: run.with(datagrams(s.Frame - headersLen)),
		},
		{
			name: "UDP GSO and GRO", needs: []backend{sockets},
			run: messages(sockets, "tx-gso", "rx-gro").with(datagrams(s.Message)),
		},
	}
}

// datagrams sets the payload of UDP sockets.
func datagrams(size int) func(stage.Side, *worker.Options) {
	return func(_ stage.Side, o *worker.Options) { o.Size = size }
}

// messages sends from A to B and measures what arrives.
func messages(who backend, send, receive string) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		reports, err := p.play(ctx, role{stage.A, who, send}, role{stage.B, who, receive})
		if err != nil {
			return measurement{}, err
		}
		m := measurement{value: reports[1].PerSecond(), workers: reports}
		if who != rc { // which resends what is lost, and counts what is acknowledged
			m.loss = loss(reports[0].Total, reports[1].Total)
		}
		if m.value == 0 {
			return m, errNothing
		}
		return m, nil
	}
}

// written writes from A into the memory of B and measures completed WRITEs.
func written(write, target string) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		reports, err := p.play(ctx, role{stage.A, rc, write}, role{stage.B, rc, target})
		if err != nil {
			return measurement{}, err
		}
		m := measurement{value: reports[0].PerSecond(), workers: reports}
		if m.value == 0 {
			return m, errNothing
		}
		return m, nil
	}
}

// times turns what a run measures into another unit.
func (run runFunc) times(factor float64) runFunc {
	return func(ctx context.Context, p *place) (measurement, error) {
		m, err := run(ctx, p)
		m.value *= factor
		return m, err
	}
}
