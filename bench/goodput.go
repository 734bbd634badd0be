package main

import (
	"fmt"

	"xroce/bench/load"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// The goodput of WRITEs, against what raw frames of the same size would carry.

// longLength is the bytes of a long WRITE.
const longLength = 1 << 20

// pathMTUs are all that there are, each with a device MTU that its packets need:
// the usual one where that is enough.
var pathMTUs = []struct{ pathMTU, mtu int }{
	{256, 1500},
	{512, 1500},
	{1024, 1500},
	{2048, 2200},
	{4096, 4200},
}

// goodputCases measure long WRITEs at each path MTU, with kernel sockets beside
// them at some.
func goodputCases() []benchCase {
	var cases []benchCase
	for _, m := range pathMTUs {
		s := rawSockets(m.pathMTU + load.RCOverhead)
		s.Message = longLength
		c := benchCase{
			name:    fmt.Sprintf("goodput-%d", m.pathMTU),
			title:   fmt.Sprintf("goodput of 1 MiB WRITEs, path MTU %d", m.pathMTU),
			unit:    "bit/s",
			control: rawName,
			stage:   stage.Options{MTU: m.mtu, Threaded: true},
			sockets: s,
			variants: []variant{
				{
					name: rc.String(), needs: []backend{rc},
					run: written("write", "target").times(8 * longLength),
				},
				rawPayload(m.pathMTU),
			},
		}
		if m.pathMTU >= 1024 {
			c.variants = append(c.variants, paid(placedVariant(), m.pathMTU))
		}
		if m.pathMTU == 1024 || m.pathMTU == 2048 {
			c.variants = append(c.variants, udpGoodput(s), udpSegmented(m.pathMTU),
				variant{name: "kernel TCP", needs: []backend{iperf3}, run: kernelTCP},
				variant{
					name: "kernel TCP, XDP attached", needs: []backend{iperf3}, run: tcpBesideXDP,
				})
		}
		cases = append(cases, c)
		if m.pathMTU == 1024 {
			cases = append(cases, untuned(c), cold(c, m.pathMTU))
		}
	}
	return cases
}

// coldMemory is how many bytes messages go through that are to find nothing in a cache.
const coldMemory = 256 << 20

// cold is a case of WRITEs through memory that no cache holds, at both ends, in few rounds.
func cold(c benchCase, pathMTU int) benchCase {
	c.name += "-cold"
	c.title += fmt.Sprintf(", through %d MiB of memory", coldMemory>>20)
	c.maxRounds = 3
	through := func(_ stage.Side, o *worker.Options) { o.Memory = coldMemory }
	raw, limit := rawPayload(pathMTU), placedVariant()
	limit.run = limit.run.with(through)
	c.variants = []variant{
		{
			name: rc.String(), needs: []backend{rc},
			run: written("write", "target").times(8 * longLength).with(through),
		},
		raw, paid(limit, pathMTU),
	}
	return c
}

// udpSegmented sends datagrams of a size that the kernel splits off, and joins, many at a time.
func udpSegmented(payload int) variant {
	return variant{
		name: "UDP GSO and GRO", needs: []backend{sockets},
		run: messages(sockets, "tx-gso", "rx-gro").with(datagrams(payload)).
			times(float64(8 * payload)),
	}
}

// rawPayload sends raw frames of the size of full packets.
func rawPayload(payload int) variant { return paid(rawVariant(), payload) }

// paid counts of each frame of a variant what is payload, or would be.
func paid(v variant, payload int) variant {
	v.run = v.run.times(float64(8 * payload))
	return v
}

// udpGoodput sends datagrams whose frames are as long as full packets.
func udpGoodput(s result.Sockets) variant {
	payload := s.Frame - headersLen
	return variant{
		name: "UDP sockets, same frame", needs: []backend{sockets},
		run: messages(sockets, "tx", "rx").with(datagrams(payload)).times(float64(8 * payload)),
	}
}

// messageSizes are those of the bandwidth by size.
var messageSizes = []struct {
	name  string
	bytes int
}{
	{"64 B", 64},
	{"256 B", 256},
	{"1 KiB", 1 << 10},
	{"4 KiB", 4 << 10},
	{"16 KiB", 16 << 10},
	{"64 KiB", 64 << 10},
	{"256 KiB", 256 << 10},
	{"1 MiB", 1 << 20},
	{"8 MiB", 8 << 20},
}

// sizeCases measure WRITEs of all sizes at each path MTU. By default one path MTU
// stands for all.
func sizeCases() []benchCase {
	var cases []benchCase
	for _, m := range pathMTUs {
		c := benchCase{
			name:      fmt.Sprintf("size-%d", m.pathMTU),
			title:     fmt.Sprintf("goodput of WRITEs by size, path MTU %d", m.pathMTU),
			unit:      "bit/s",
			control:   rawName,
			reference: rawName,
			axis:      "bytes of a message",
			full:      m.pathMTU != 1024,
			maxRounds: 3, // a curve, not a verdict
			stage:     stage.Options{MTU: m.mtu, Threaded: true},
			sockets:   rawSockets(m.pathMTU + load.RCOverhead),
		}
		for _, size := range messageSizes {
			c.variants = append(c.variants, variant{
				name: size.name, needs: []backend{rc}, at: float64(size.bytes),
				run: written("write", "target").times(float64(8 * size.bytes)).
					with(func(_ stage.Side, o *worker.Options) { o.Message = size.bytes }),
			})
		}
		raw := rawPayload(m.pathMTU)
		raw.offAxis = true
		c.variants = append(c.variants, raw)
		cases = append(cases, c)
	}
	return cases
}
