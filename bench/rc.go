package main

import (
	"context"
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
)

// Reliable connections, against the same frames raw and against kernel sockets.

const (
	rawName     = "raw AF_XDP"
	writeLength = 1 << 20 // bytes of a WRITE
	sendLength  = 64      // bytes of a SEND
)

// rcWriteCases measure the goodput of long WRITEs at each path MTU. The device
// MTU is what a packet of that path MTU needs, and the usual 1500 for 1024.
func rcWriteCases() []benchCase {
	var cases []benchCase
	for _, m := range []struct{ pathMTU, mtu int }{{1024, 1500}, {2048, 2200}, {4096, 4200}} {
		s := rawSockets(m.pathMTU + load.RCOverhead)
		s.Message = writeLength
		cases = append(cases, benchCase{
			name:    fmt.Sprintf("rc-write-%d", m.pathMTU),
			title:   fmt.Sprintf("goodput of 1 MiB WRITEs, path MTU %d", m.pathMTU),
			unit:    "bit/s",
			control: rawName,
			stage:   stage.Options{MTU: m.mtu, Threaded: true},
			sockets: s,
			variants: []variant{
				{name: rc.String(), needs: []backend{rc}, run: rcWrite},
				{name: rawName, needs: []backend{ours}, run: rawGoodput(m.pathMTU)},
				{name: "kernel TCP", needs: []backend{iperf3}, run: kernelTCP},
				{name: "kernel TCP, XDP attached", needs: []backend{iperf3}, run: tcpBesideXDP},
			},
		})
	}
	return cases
}

// rcWrite measures completed WRITEs.
func rcWrite(ctx context.Context, p *place) (measurement, error) {
	reports, err := p.play(ctx, role{stage.A, rc, "write"}, role{stage.B, rc, "target"})
	if err != nil {
		return measurement{}, err
	}
	m := measurement{value: bitRate(reports[0].Bytes, reports[0].Seconds), workers: reports}
	if m.value == 0 {
		return m, errNothing
	}
	return m, nil
}

// rawGoodput measures raw frames of the size of full packets, and counts of each
// what would be payload.
func rawGoodput(payload int) func(context.Context, *place) (measurement, error) {
	return func(ctx context.Context, p *place) (measurement, error) {
		m, err := p.stream(ctx, ours, ours)
		m.value *= float64(8 * payload)
		return m, err
	}
}

// rcSendCases measure the rate of short SENDs.
func rcSendCases() []benchCase {
	c := rcShort("rc-send", "SEND of 64 bytes, one connection", "messages/s", true)
	c.variants = []variant{
		{name: rc.String(), needs: []backend{rc}, run: func(ctx context.Context, p *place) (
			measurement, error,
		) {
			return p.messages(ctx, rc, "send", "recv")
		}},
		{name: rawName, needs: []backend{ours}, run: func(ctx context.Context, p *place) (
			measurement, error,
		) {
			return p.stream(ctx, ours, ours)
		}},
		{name: "UDP sockets, batched", needs: []backend{sockets}, run: func(ctx context.Context,
			p *place,
		) (measurement, error) {
			return p.messages(ctx, sockets, "tx", "rx")
		}},
	}
	return []benchCase{c}
}

// rcRTTCases measure one short SEND there and back.
func rcRTTCases() []benchCase {
	c := rcShort("rc-rtt", "half round trip of 64-byte SENDs, median", "ns", false)
	c.lowerIsBetter = true
	for _, v := range []struct {
		name      string
		who       backend
		ask, echo string
	}{
		{rc.String(), rc, "ping", "echo"},
		{rawName, ours, "ping", "echo"},
		{"UDP sockets, spinning", sockets, "ping-spin", "echo-spin"},
		{"UDP sockets, blocking", sockets, "ping", "echo"},
	} {
		c.variants = append(c.variants, variant{
			name: v.name, needs: []backend{v.who},
			run: func(ctx context.Context, p *place) (measurement, error) {
				return p.pingPong(ctx, v.who, v.ask, v.echo)
			},
		})
	}
	return []benchCase{c}
}

// rcShort is a case of short messages, with raw frames as long as their packets.
func rcShort(kind, title, unit string, threaded bool) benchCase {
	s := rawSockets(sendLength + load.RCOverhead)
	s.Message = sendLength
	return benchCase{
		name: fmt.Sprintf("%s-%d", kind, sendLength), title: title, unit: unit,
		control: rawName, stage: stage.Options{MTU: 1500, Threaded: threaded}, sockets: s,
	}
}

// messages sends from A to B and measures what arrives.
func (p *place) messages(ctx context.Context, who backend, send, receive string) (
	measurement, error,
) {
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

func bitRate(bytes uint64, seconds float64) float64 {
	if seconds <= 0 {
		return 0
	}
	return 8 * float64(bytes) / seconds
}
