package main

import (
	"github.com/spf13/pflag"

	"xroce/bpf"
	"xroce/cmd/xroce/internal/traffic"
	"xroce/xsk"
)

// portFlags are those of the queue that test frames leave, or come to.
type portFlags struct {
	traffic.PortOptions
	what          string // it is for: "send from"
	attaches      bool   // an XDP program
	mode, xdpMode string
	capture       string
	metrics       string
	queue         *pflag.Flag
}

// register declares the flags.
func (f *portFlags) register(flags *pflag.FlagSet, what string, attaches bool) {
	f.what, f.attaches = what, attaches
	flags.StringVarP(&f.Interface, "device", "d", "", "interface to "+what+" (required)")
	if attaches {
		flags.IntVar(&f.Queue, "queue", traffic.AllQueues, "receive queue to take from")
		flags.Lookup("queue").DefValue = "all"
	} else {
		flags.IntVar(&f.Queue, "queue", 0, "queue to send on")
	}
	f.queue = flags.Lookup("queue")
	flags.StringVar(&f.capture, "capture", "", captureUsage)
	flags.StringVar(&f.metrics, "metrics", "", metricsUsage)
	flags.StringVar(&f.mode, "xsk-mode", "auto", "how frames travel: auto, copy, zero-copy")
	if attaches {
		flags.StringVar(&f.xdpMode, "xdp-mode", "auto",
			"where the XDP program runs: auto, native, generic")
	}
}

// check refuses what cannot be.
func (f *portFlags) check() error {
	var ok [2]bool
	f.Mode, ok[0] = lookup(f.mode, xsk.ModeAuto, xsk.ModeCopy, xsk.ModeZeroCopy)
	if ok[1] = true; f.attaches {
		f.Attach, ok[1] = lookup(f.xdpMode, bpf.Auto, bpf.Native, bpf.Generic)
	}
	switch {
	case f.capture == "-":
		return errCaptureOutput
	case f.Interface == "":
		return usagef("-d: name the interface to %s; 'xroce devices' lists them", f.what)
	case !ok[0]:
		return usagef("no XSK mode %q: there are auto, copy and zero-copy", f.mode)
	case !ok[1]:
		return usagef("no XDP mode %q: there are auto, native and generic", f.xdpMode)
	case f.Queue < 0 && f.queue.Changed:
		return usagef("--queue %d is negative", f.Queue)
	}
	return nil
}
