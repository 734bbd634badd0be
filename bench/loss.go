package main

import (
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// Goodput over a link that loses packets, as a seed decides, each for itself.

// lossRates are in packets in a million.
var lossRates = []int{0, 1000, 10000, 50000}

const (
	lossLength  = 64 << 10 // bytes of a WRITE
	lossPathMTU = 1024
)

// lossCases measure WRITEs of some length at each loss rate, for each way to
// recover. Packets are lost in both directions; the case whose name ends in data
// spares the acknowledgements, as the ideal formulas do.
func lossCases() []benchCase {
	return []benchCase{
		lossCase("gbn", "go-back-N", false, false),
		lossCase("selective", "selective repeat", true, false),
		lossCase("gbn-data", "go-back-N, only data is lost", false, true),
		lossCase("selective-data", "selective repeat, only data is lost", true, true),
	}
}

func lossCase(suffix, how string, selective, dataOnly bool) benchCase {
	s := rawSockets(lossPathMTU + load.RCOverhead)
	s.Message = lossLength
	c := benchCase{
		name:    "loss-" + suffix,
		title:   fmt.Sprintf("goodput of 64 KiB WRITEs over a lossy link, %s", how),
		unit:    "bit/s",
		axis:    "packets lost in a million",
		full:    dataOnly,
		stage:   stage.Options{MTU: 1500, Threaded: true},
		sockets: s,
	}
	for _, ppm := range lossRates {
		v := variant{
			name: fmt.Sprintf("%g %% loss", float64(ppm)/1e4), needs: []backend{rc},
			at: float64(ppm),
			run: written("write", "target").times(8 * lossLength).
				with(func(side stage.Side, o *worker.Options) {
					o.Seed, o.Selective, o.LossPPM = 1+int(side), selective, ppm
					if dataOnly && side == stage.B {
						o.LossPPM = 0
					}
				}),
		}
		c.variants = append(c.variants, v)
	}
	c.control, c.reference = c.variants[0].name, c.variants[0].name
	return c
}
