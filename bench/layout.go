package main

import (
	"context"
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// Data that lies in memory in blocks with gaps, written as one: through a layout, and
// in the two ways that there are without.

// blockedLength is the bytes of a message, at least. Work requests that list the blocks
// are no longer than all their pieces: so many blocks.
const (
	blockedLength = 64 << 10
	blocksListed  = 32
)

// blockedPathMTU is the path MTU of these messages.
const blockedPathMTU = 1024

// layoutCases measure the goodput of WRITEs from blocks of each size. The goals are
// about those above 64 bytes.
func layoutCases() []benchCase {
	var cases []benchCase
	for _, block := range []int{8, 64, 512, 4096} {
		s := rawSockets(blockedPathMTU + load.RCOverhead)
		s.Message = max(blockedLength, blocksListed*block)
		c := benchCase{
			name:    fmt.Sprintf("layout-%d", block),
			title:   fmt.Sprintf("goodput of WRITEs from blocks of %d bytes with gaps", block),
			unit:    "bit/s",
			control: contiguousName,
			full:    block <= 64,
			stage:   stage.Options{MTU: 1500, Threaded: true},
			sockets: s,
		}
		for _, v := range []struct {
			name, mode    string
			block, length int
		}{
			{rc.String(), "layout", block, s.Message},
			{contiguousName, "write", 0, s.Message},
			{packedName, "pack", block, s.Message},
			{listedName, "sges", block, blocksListed * block},
		} {
			c.variants = append(c.variants, variant{
				name: v.name, needs: []backend{rc},
				run: written(v.mode, "target").times(float64(8 * v.length)).
					with(func(_ stage.Side, o *worker.Options) {
						o.Message, o.Block = v.length, v.block
					}),
			})
		}
		cases = append(cases, c)
	}
	return cases
}

// turnCases compare layouts with the other ways on the wire, in turn over one connection: what is
// between them is less than what is between two processes. NAPI is in the sender's softirq, as
// the kernel's sockets have it, so the sender is what is slow. A layout beside itself tells how
// far the method can be believed.
func turnCases() []benchCase {
	var cases []benchCase
	for _, kind := range []struct{ prefix, title string }{
		{"turns", "rate of a layout by that of others in turn"},
		{"alone", "the same, one message at a time"},
	} {
		for _, block := range []int{512, 4096} {
			s := rawSockets(blockedPathMTU + load.RCOverhead)
			s.Message = max(blockedLength, blocksListed*block)
			c := benchCase{
				name: fmt.Sprintf("layout-%s-%d", kind.prefix, block),
				title: fmt.Sprintf("WRITEs from blocks of %d bytes with gaps, %s", block,
					kind.title),
				unit:      "of the other's rate",
				control:   itselfName,
				reference: itselfName,
				maxRounds: 5,
				stage:     stage.Options{MTU: 1500},
				sockets:   s,
			}
			for _, v := range []struct{ name, way string }{
				{itselfName, "layout"}, {packedName, "pack"}, {listedName, "sges"},
			} {
				c.variants = append(c.variants, variant{
					name: v.name, needs: []backend{rc},
					run: ratioOf(role{stage.A, rc, kind.prefix + "-" + v.way},
						role{stage.B, rc, "target"}).
						with(func(_ stage.Side, o *worker.Options) { o.Block = block }),
				})
			}
			cases = append(cases, c)
		}
	}
	return cases
}

// Names by which goals find the ways.
const (
	packedName = "packed by hand"
	listedName = "list of SGEs"
	itselfName = "a layout"
)

// contiguousName is what layouts would be at best.
const contiguousName = "contiguous"

// transmitCases measure what the sender does for such WRITEs itself, without a kernel,
// in which the differences drown where there are few pieces in a packet.
func transmitCases() []benchCase {
	var cases []benchCase
	for _, block := range []int{8, 64, 512, 4096} {
		s := rawSockets(blockedPathMTU + load.RCOverhead)
		s.Message = blocksListed * block
		c := benchCase{
			name: fmt.Sprintf("layout-transmit-%d", block),
			title: fmt.Sprintf("making the packets of a WRITE from %d blocks of %d bytes",
				blocksListed, block),
			unit:          "ns",
			lowerIsBetter: true,
			control:       contiguousName,
			full:          block <= 64,
			maxRounds:     3,
			stage:         stage.Options{MTU: 1500},
			sockets:       s,
		}
		for _, v := range []struct{ name, way string }{
			{rc.String(), "layout"},
			{contiguousName, "contiguous"},
			{packedName, "pack"},
			{listedName, "sges"},
		} {
			c.variants = append(c.variants, variant{
				name: v.name, needs: []backend{micro},
				run: runFunc(func(ctx context.Context, p *place) (measurement, error) {
					return p.step(ctx, "transmit-"+v.way)
				}).with(func(_ stage.Side, o *worker.Options) { o.Block = block }),
			})
		}
		cases = append(cases, c)
	}
	return cases
}

// configureCases measure what it takes to give a key a layout, without a kernel.
func configureCases() []benchCase {
	c := benchCase{
		name:          "layout-configure",
		title:         "giving a key a layout",
		unit:          "ns",
		lowerIsBetter: true,
		control:       crcName,
		reference:     crcName,
		full:          true,
		maxRounds:     3,
		stage:         stage.Options{MTU: 1500},
		sockets:       shortSockets(load.RCOverhead),
	}
	for _, step := range []struct{ name, mode string }{
		{"list of 4,096 pieces", "configure-list"},
		{"column of 4,096 rows", "configure-column"},
		{crcName, "crc"},
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
