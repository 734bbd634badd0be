package main

import (
	"context"

	"xroce/bench/stage"
	"xroce/bench/worker"
)

// regionSizes are the sizes of the regions that are registered, with their names. The
// first one is what the others are compared with: registering maps and pins nothing, so
// the size must not show.
var regionSizes = []struct {
	name  string
	bytes int
}{{"4 KiB", 4 << 10}, {"2 MiB", 2 << 20}, {"1 GiB", 1 << 30}}

// keyCases measure what changes of memory keys cost, without a kernel.
func keyCases() []benchCase {
	register := benchCase{
		name: "register", title: "registering and deregistering a region", unit: "ns",
		lowerIsBetter: true, full: true, control: regionSizes[0].name,
		reference: regionSizes[0].name,
		stage:     stage.Options{MTU: 1500}, sockets: shortSockets(0),
	}
	for _, size := range regionSizes {
		register.variants = append(register.variants, keyVariant(size.name, "register", size.bytes,
			func(perSecond float64) float64 { return 1e9 / perSecond }))
	}
	const type2 = "type 2, bound and invalidated"
	window := benchCase{
		name: "window", title: "binding a memory window", unit: "1/s",
		full: true, control: type2, reference: type2,
		stage: stage.Options{MTU: 1500}, sockets: shortSockets(0),
	}
	same := func(perSecond float64) float64 { return perSecond }
	window.variants = []variant{
		keyVariant(type2, "bind", 4<<10, same),
		keyVariant("type 1, bound anew", "rebind", 4<<10, same),
	}
	return []benchCase{register, window}
}

// keyVariant does one of the steps of load.Keys with regions of so many bytes.
func keyVariant(name, mode string, bytes int, value func(perSecond float64) float64) variant {
	run := runFunc(func(ctx context.Context, p *place) (measurement, error) {
		reports, err := p.play(ctx, role{stage.A, keys, mode})
		if err != nil {
			return measurement{}, err
		}
		m := measurement{workers: reports}
		if reports[0].Packets == 0 {
			return m, errNothing
		}
		m.value = value(reports[0].PerSecond())
		return m, nil
	})
	return variant{
		name: name, needs: []backend{keys},
		run: run.with(func(_ stage.Side, o *worker.Options) { o.Message = bytes }),
	}
}
