package main

import (
	"fmt"

	"xroce/bench/load"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// manyCases measure short WRITEs spread evenly over many connected queue pairs,
// one to each in turn, on one queue of each end. They are connected within one
// exchange, before the warm-up.
func manyCases() []benchCase {
	c := benchCase{
		name:    fmt.Sprintf("qps-%d", shortLength),
		title:   fmt.Sprintf("WRITE of %d bytes, spread over queue pairs", shortLength),
		unit:    "messages/s",
		axis:    "queue pairs",
		stage:   stage.Options{MTU: 1500, Threaded: true},
		sockets: shortSockets(load.WriteOverhead),
	}
	for _, n := range []int{1, 100, 10000} {
		name := fmt.Sprintf("%d QPs", n)
		if n == 1 {
			name = "1 QP"
		}
		c.variants = append(c.variants, variant{
			name: name, needs: []backend{rc}, at: float64(n),
			run: written("write-many", "target-many").
				with(func(_ stage.Side, o *worker.Options) { o.QPs = n }),
		})
	}
	c.control = c.variants[0].name
	c.reference = c.variants[0].name
	return []benchCase{c}
}
