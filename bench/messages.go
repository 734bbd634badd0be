package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"xroce/bench/load"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
	"xroce/roce/msg"
)

// Messages of package engine/msg, beside our own verbs, UCX over kernel TCP, and sockets. Every
// peer that is the kernel's has an XDP program on both ends, as AF_XDP has.

// messagePathMTU is the path MTU of the connections of messages: that of an interface with the
// usual MTU.
const messagePathMTU = 1024

// Names by which goals and plots find the variants.
const (
	sendName  = "SEND"
	writeName = "WRITE"
)

// messagePrefix begins the names of all cases of messages.
const messagePrefix = "msg-"

// messageCases are all cases of messages.
func messageCases() []benchCase {
	return slices.Concat([]benchCase{messageRateCase(), messageRTTCase(), messageGoodputCase()},
		streamCases(), protocolCases(), firstCases(), overlapCases(), guardCases())
}

// messageSockets are the settings of messages of a length, and of the packets of our own verbs
// beside them.
func messageSockets(length int) result.Sockets {
	s := rawSockets(messagePathMTU + load.RCOverhead)
	s.Message = length
	return s
}

// messageCase is what the cases have in common. NAPI runs in the sender's softirq for all of them:
// that is how the kernel's sockets have it, and of ours no more is under way than rings hold.
func messageCase(name, title string, length int) benchCase {
	return benchCase{
		name:    messagePrefix + name,
		title:   fmt.Sprintf("%s, path MTU %d", title, messagePathMTU),
		control: messaging.String(),
		stage:   stage.Options{MTU: 1500},
		sockets: messageSockets(length),
	}
}

// messageRateCase measures short messages that are posted in bulk.
func messageRateCase() benchCase {
	c := messageCase(fmt.Sprint(shortLength),
		fmt.Sprintf("messages of %d bytes, posted in bulk", shortLength), shortLength)
	c.unit = "messages/s"
	c.control = sendName
	gso := datagrams(shortLength)
	c.variants = []variant{
		{name: messaging.String(), needs: []backend{messaging}, run: sentMessages("")},
		{name: sendName, needs: []backend{rc}, run: messages(rc, "send", "recv")},
		{
			name: ucx.String(), needs: []backend{ucx},
			run: besideXDP(ucxTest{"tag_bw", 2000, ucxRate}.run(shortLength)),
		},
		{
			name: "UDP GSO and GRO", needs: []backend{sockets},
			run: besideXDP(messages(sockets, "tx-gso", "rx-gro").with(gso)),
		},
		{
			name: "UDP GSO and GRO, no XDP", needs: []backend{sockets},
			run: messages(sockets, "tx-gso", "rx-gro").with(gso),
		},
		{
			name: "UDP sendmmsg", needs: []backend{sockets},
			run: besideXDP(messages(sockets, "tx", "rx").with(gso)),
		},
	}
	return c
}

func ucxRate(l ucxLine) float64 { return l.perSecond }

// messageRTTCase measures half a round trip of a short message, both ends spinning.
func messageRTTCase() benchCase {
	c := messageCase(fmt.Sprintf("rtt-%d", shortLength),
		fmt.Sprintf("half round trip of a message of %d bytes, spinning, median", shortLength),
		shortLength)
	c.unit, c.lowerIsBetter, c.control = "ns", true, sendName
	c.variants = exchangeVariants([]exchange{
		{messaging.String(), messaging, "ping", "echo"}, {sendName, rc, "ping", "echo"},
	})
	c.variants = append(c.variants, variant{
		name: ucx.String(), needs: []backend{ucx},
		run: besideXDP(ucxTest{"tag_lat", 1000, func(l ucxLine) float64 {
			return 1e3 * l.median
		}}.run(shortLength)),
	})
	return c
}

// messageGoodputCase measures long messages.
func messageGoodputCase() benchCase {
	c := messageCase("1m", "goodput of messages of 1 MiB", longLength)
	c.unit, c.control = "bit/s", writeName
	c.variants = []variant{
		{
			name: messaging.String(), needs: []backend{messaging},
			run: sentMessages("").times(8 * longLength),
		},
		{
			name: writeName, needs: []backend{rc},
			run: written("write", "target").times(8 * longLength),
		},
		{
			name: ucx.String(), needs: []backend{ucx},
			run: besideXDP(ucxTest{"tag_bw", 20, ucxRate}.run(longLength)).times(8 * longLength),
		},
	}
	return c
}

// sentMessages sends messages from A to B by a protocol, or by whichever the machine chooses, and
// measures what arrives.
func sentMessages(protocol string) runFunc {
	return messages(messaging, "post", "take").with(func(_ stage.Side, o *worker.Options) {
		o.Protocol = protocol
	})
}

// streamCases measure connections that carry bytes beside those of package net.
func streamCases() []benchCase {
	const piece = 64 << 10
	bulk := messageCase("stream", "goodput of a net.Conn, writes of 64 KiB", piece)
	bulk.unit, bulk.control = "bit/s", goTCP.String()
	bulk.variants = []variant{
		{
			name: messaging.String(), needs: []backend{messaging},
			run: messages(messaging, "stream-post", "stream-take").times(8 * piece),
		},
		{
			name: goTCP.String(), needs: []backend{goTCP},
			run: messages(goTCP, "post", "take").times(8 * piece),
		},
	}
	rtt := messageCase(fmt.Sprintf("stream-rtt-%d", shortLength),
		fmt.Sprintf("half round trip of %d bytes over a net.Conn, median", shortLength),
		shortLength)
	rtt.unit, rtt.lowerIsBetter, rtt.control = "ns", true, goTCP.String()
	rtt.variants = exchangeVariants([]exchange{
		{messaging.String(), messaging, "stream-ping", "stream-echo"},
		{goTCP.String(), goTCP, "ping", "echo"},
	})
	return []benchCase{bulk, rtt}
}

// What a small slot takes, and the largest of the large ones, by default.
const (
	smallSlot = 1024
	largeSlot = 196608
)

// forcedFor are the protocols that a message of a length can be made to take.
func forcedFor(length int) []msg.Protocol {
	var list []msg.Protocol
	if length <= smallSlot {
		list = append(list, msg.Eager)
	}
	if length <= largeSlot {
		list = append(list, msg.Provisioned)
	}
	return append(list, msg.Get, msg.Put, msg.Fragments)
}

// sizeName is the end of the name of a case of a length.
func sizeName(length int) string {
	return strings.TrimPrefix(result.SizePrefix, messagePrefix) + fmt.Sprint(length)
}

// protocolSizes are the lengths of messages whose protocols are compared.
var protocolSizes = []int{64, 256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

// protocolCases measure each length by each protocol, and by the machine's choice.
func protocolCases() []benchCase {
	var cases []benchCase
	for _, length := range protocolSizes {
		c := messageCase(sizeName(length),
			fmt.Sprintf("goodput of messages of %d bytes by protocol", length), length)
		c.unit = "bit/s"
		c.axis = "bytes of a message"
		c.full = true
		c.variants = []variant{{
			name: messaging.String(), needs: []backend{messaging}, at: float64(length),
			run: sentMessages("").times(float64(8 * length)),
		}}
		for _, p := range forcedFor(length) {
			c.variants = append(c.variants, variant{
				name: p.String(), needs: []backend{messaging}, at: float64(length),
				run: sentMessages(p.String()).times(float64(8 * length)),
			})
		}
		cases = append(cases, c)
	}
	return cases
}

// firstSizes are the lengths of messages that are the first of their connection.
var firstSizes = []int{256, 1 << 10, 4 << 10, 16 << 10, 64 << 10, largeSlot}

// firstCases measure the first messages of new connections, by each protocol.
func firstCases() []benchCase {
	var cases []benchCase
	for _, length := range firstSizes {
		c := messageCase(fmt.Sprintf("first-%d", length),
			fmt.Sprintf("half round trip of the first message of %d bytes of a connection, "+
				"by protocol, median", length), length)
		c.unit, c.lowerIsBetter = "ns", true
		c.axis = "bytes of a message"
		c.full = true
		c.maxRounds = 3 // a curve, not a verdict
		for _, p := range append([]msg.Protocol{msg.Auto}, forcedFor(length)...) {
			name := p.String()
			if p == msg.Auto {
				name = messaging.String()
			}
			v := exchangeVariants([]exchange{{name, messaging, "first", "early"}})[0]
			v.at = float64(length)
			v.run = v.run.with(func(_ stage.Side, o *worker.Options) { o.Protocol = p.String() })
			c.variants = append(c.variants, v)
		}
		cases = append(cases, c)
	}
	return cases
}

// meanwhile are the things an application may do behind a message that it has posted.
var meanwhile = []struct{ name, mode string }{
	{"ours", "nothing"}, {"asleep meanwhile", "sleep"}, {"computing meanwhile", "busy"},
}

// overlapCases measure what goes on while the application is away for a millisecond: the message
// itself, and when its announcement leaves.
func overlapCases() []benchCase {
	all := messageCase("overlap", "1 MiB posted, 1 ms of something else, then waited for, median",
		longLength)
	all.unit, all.lowerIsBetter, all.full = "ns", true, true
	announced := messageCase("announce", "from Send to the announcement on the wire, median",
		longLength)
	announced.unit, announced.lowerIsBetter, announced.full = "ns", true, true
	for _, one := range meanwhile {
		all.variants = append(all.variants, awayVariant(one.name, "overlap-"+one.mode))
		if one.mode == "nothing" {
			continue
		}
		name := one.name
		if len(announced.variants) == 0 {
			name = messaging.String()
		}
		announced.variants = append(announced.variants, awayVariant(name, "announce-"+one.mode))
	}
	return []benchCase{all, announced}
}

// awayVariant measures the median of what a sender does on its own; the other end takes messages.
func awayVariant(name, mode string) variant {
	return variant{
		name: name, needs: []backend{messaging},
		run: func(ctx context.Context, p *place) (measurement, error) {
			m, err := p.pingPong(ctx, messaging, mode, "take")
			m.value *= 2 // the whole time
			return m, err
		},
	}
}

// copyLength is how much is copied at once.
const copyLength = 64 << 10

// pinSizes are the lengths of memory that is pinned.
var pinSizes = []int{4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20}

// guardCases measure what keys cost, and what pinning would that we do not need.
func guardCases() []benchCase {
	key := messageCase("key", fmt.Sprintf("storing %d bytes that a peer sends", shortLength),
		shortLength)
	key.unit, key.lowerIsBetter, key.full = "ns", true, true
	key.control, key.reference = "no key", "no key"
	for _, step := range []struct{ name, mode string }{
		{"its key", "store-key"}, {"forged keys", "store-forged"}, {"no key", "store-copy"},
	} {
		key.variants = append(key.variants, microVariant(step.name, step.mode, shortLength))
	}
	pin := messageCase("pin", "pinning memory (mlock), as an adapter needs it", pinSizes[0])
	pin.unit, pin.lowerIsBetter, pin.full, pin.axis = "ns", true, true, "bytes"
	for _, n := range pinSizes {
		v := microVariant(fmt.Sprint(n), "pin", n)
		v.at = float64(n)
		pin.variants = append(pin.variants, v)
	}
	pin.control, pin.reference = pin.variants[0].name, pin.variants[0].name
	copied := messageCase("copy", "copying 64 KiB to memory that is in no cache", copyLength)
	copied.unit, copied.lowerIsBetter, copied.full = "ns", true, true
	copied.control, copied.reference = "in a cache", "in a cache"
	copied.variants = []variant{
		microVariant("in no cache", "copy-cold", copyLength),
		microVariant("in a cache", "store-copy", copyLength),
	}
	return []benchCase{key, pin, copied}
}

// microVariant does a step of load.Micro with so many bytes.
func microVariant(name, mode string, bytes int) variant {
	run := runFunc(func(ctx context.Context, p *place) (measurement, error) {
		return p.step(ctx, mode)
	})
	return variant{
		name: name, needs: []backend{micro},
		run: run.with(func(_ stage.Side, o *worker.Options) { o.Message = bytes }),
	}
}
