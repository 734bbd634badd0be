package main

import (
	"strconv"

	"github.com/spf13/pflag"

	"xroce/engine"
)

// queueFlags say which receive queues of the interface a device takes, and who drives them.
type queueFlags struct {
	queue   int
	queues  string
	force   bool
	drivers int
	stay    bool
	cpus    []int
}

// allQueues is the value of --queues that is the default.
const allQueues = "all"

// maxQueues is more than any interface has.
const maxQueues = 1 << 16

// register declares the flags.
func (f *queueFlags) register(flags *pflag.FlagSet) {
	flags.IntVar(&f.queue, "queue", -1, "take this receive queue alone, counted from 0; -1 for "+
		"those of --queues")
	flags.StringVar(&f.queues, "queues", allQueues,
		"receive queues of the interface to take: all, or so many from the first on")
	flags.BoolVar(&f.force, "force", false,
		"leave receive queues out, where the card is told to put no RoCE packets there")
	flags.IntVar(&f.drivers, "drivers", 1, "threads that share the queues")
	flags.BoolVar(&f.stay, "no-rebalance", false,
		"leave each queue pair with its thread, wherever its packets come to")
	flags.IntSliceVar(&f.cpus, "cpu", nil,
		"CPUs to pin those threads to, one for each (default: any)")
}

// set takes the flags over, or tells what is wrong with them.
func (f *queueFlags) set(o *engine.Options) error {
	count := 0
	if f.queues != allQueues {
		var err error
		if count, err = strconv.Atoi(f.queues); err != nil || count < 1 || count > maxQueues {
			return usagef("--queues %q is neither all nor a number from 1 on", f.queues)
		}
	}
	switch {
	case f.queue < -1 || f.queue >= maxQueues:
		return usagef("--queue %d: queues are counted from 0", f.queue)
	case f.queue >= 0 && count > 0:
		return usagef("--queue is one and --queues several: name one of them")
	case f.drivers < 1:
		return usagef("--drivers %d: there is one at least", f.drivers)
	case f.drivers > 1 && (f.queue >= 0 || count > 0 && count < f.drivers):
		return usagef("--drivers %d: each needs a queue of its own", f.drivers)
	case f.queue >= 0:
		o.Queues = []int{f.queue}
	}
	for q := range count {
		o.Queues = append(o.Queues, q)
	}
	for _, cpu := range f.cpus {
		if cpu < 0 || !canPin(cpu) {
			return usagef("--cpu %d: there is none that may be used; 'taskset -pc $$' lists them",
				cpu)
		}
	}
	o.Partial, o.Drivers, o.CPUs, o.NoRebalance = f.force, f.drivers, f.cpus, f.stay
	return nil
}
