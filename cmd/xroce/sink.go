package main

import (
	"context"
	"fmt"
	"net"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/gen"
)

// sinkFlags are what `xroce sink` was asked.
type sinkFlags struct {
	port         portFlags
	ports, types []uint
	format       string
	opener       *traffic.Opener
	duration     time.Duration
	count        uint64
	keep, flows  bool
	interval     float64
	maxLoss      lossFlag
}

func (a *app) sinkCommand() *cobra.Command {
	var f sinkFlags
	c := &cobra.Command{
		Use:   "sink -d IFACE",
		Short: "Count the frames of xroce pktgen: loss, order, latency and jitter",
		Long: `Take the frames that 'xroce pktgen' sends off an interface, count for each flow what
is lost, duplicate and out of order, and measure latency and jitter. An XDP program hands over
UDP datagrams to --port and to 4791, which is RoCE v2, of whatever address, and frames of
--ethertype; all else goes on to the kernel. RoCE v1 is --ethertype 0x8915. It ends when all
flows have ended, and with --keep when it is interrupted; then, too, it prints its totals.

Latency is by the clocks of both ends: it is right on one machine, and as exact as the clocks
agree between two. Jitter needs no such thing. Both are exact to a batch of frames.

Exit codes: 0 it worked, or it was interrupted; 1 more was lost than --max-loss, or nothing
came for it to judge.`,
		Example: `  xroce sink -d eth0 --json
  xroce sink -d eth0 --keep -i 1
  xroce sink -d eth0 --ethertype 0x8915     # pktgen --kind roce --roce-v1
  xroce sink -d eth0 --max-loss 0.1 --duration 60s --per-flow`,
		Args: cobra.NoArgs,
	}
	flags := c.Flags()
	f.port.register(flags, "collect from", true)
	flags.Var(numbers(&f.ports, gen.DefaultPort), "port", "UDP ports to take, beside 4791")
	flags.Var(numbers(&f.types, gen.DefaultEtherType), "ethertype", "EtherTypes to take")
	flags.Lookup("ethertype").DefValue = fmt.Sprintf("%#x", gen.DefaultEtherType)
	flags.StringVar(&f.format, "format", "", "frames are encapsulated: as --format of pktgen says")
	flags.DurationVar(&f.duration, "duration", 0, "end after this time")
	flags.Uint64VarP(&f.count, "count", "n", 0, "end behind so many frames")
	flags.BoolVarP(&f.keep, "keep", "k", false, "go on when all flows have ended")
	flags.BoolVar(&f.flows, "per-flow", false, "tell of each flow")
	flags.Float64VarP(&f.interval, "interval", "i", 0, "print a row each so many seconds")
	flags.Var(&f.maxLoss, "max-loss", "fail when more than this `percent` was lost")
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := f.check(a); err != nil {
			return err
		}
		return a.sink(ctx, &f)
	})
}

// check refuses what cannot be.
func (f *sinkFlags) check(a *app) error {
	if err := f.port.check(); err != nil {
		return err
	}
	switch {
	case f.duration < 0:
		return usagef("--duration %s is negative", f.duration)
	case f.interval < 0 || f.interval > maxInterval:
		return usagef("-i %g is not in 0..%d", f.interval, int(maxInterval))
	case f.interval > 0 && a.json:
		return usagef("-i prints rows for people, --json one document")
	}
	for _, n := range f.ports {
		if n < 1 || n > 0xffff {
			return usagef("--port %d is not in 1..65535", n)
		}
		f.port.Ports = append(f.port.Ports, uint16(n))
	}
	for _, n := range f.types {
		if n < 0x600 || n > 0xffff {
			return usagef("--ethertype %#x is not in 0x600..0xffff", n)
		}
		f.port.Types = append(f.port.Types, uint16(n))
	}
	if f.format == "" {
		return nil
	}
	var err error
	if f.opener, err = traffic.NewOpener(f.format); err != nil {
		return usageError{err}
	}
	if t := f.opener.EtherType(); t != 0 {
		f.port.Types = append(f.port.Types, t)
	}
	return nil
}

// ifaceAddr is an interface as where something listens.
type ifaceAddr string

// Network implements net.Addr.
func (ifaceAddr) Network() string { return "xdp" }

// String implements net.Addr.
func (i ifaceAddr) String() string { return string(i) }

// sink collects and reports.
func (a *app) sink(ctx context.Context, f *sinkFlags) error {
	port, meter, err := a.openSink(&f.port)
	if err != nil {
		return advise(err, f.port.Interface)
	}
	defer port.Close()
	s := traffic.NewSink(f.opener)
	c := &traffic.Collector{
		Link: port.Link, Sink: s, Clock: traffic.NewSystem(false), Keep: f.keep, Count: f.count,
		Guard:    meter.Watch(s),
		For:      clock.Time(f.duration),
		Interval: clock.Time(f.interval * float64(time.Second)),
		Row:      func(r traffic.Row) { a.trafficRow(r, true) },
	}
	a.tellReady(net.Addr(ifaceAddr(port.Name)),
		fmt.Sprintf(", collecting on %s, Ctrl-C to end", port.Name))
	a.trafficHeader(f.interval, true)
	if err := c.Run(ctx); err != nil {
		return orRemoved(port.Name, err)
	}
	st, err := port.Link.Stats()
	if err != nil {
		return err
	}
	r := newSinkReport(port.Name, s, st)
	r.attachReport = newAttachReport(port)
	if f.flows {
		r.addFlows(s)
	}
	if err := a.printSink(&r); err != nil {
		return err
	}
	return f.maxLoss.judge(r.Loss)
}

// quantiles are those that a report has of a time, in nanoseconds.
type quantiles struct {
	Min  int64   `json:"min"`
	Mean float64 `json:"mean"`
	P50  int64   `json:"p50"`
	P90  int64   `json:"p90"`
	P99  int64   `json:"p99"`
	P999 int64   `json:"p99.9"`
	Max  int64   `json:"max"`
}

// newQuantiles reads a histogram, nil when there is nothing in it.
func newQuantiles(h *hdrhistogram.Histogram) *quantiles {
	if h.TotalCount() == 0 {
		return nil
	}
	return &quantiles{
		Min: h.Min(), Mean: h.Mean(), P50: h.ValueAtQuantile(50), P90: h.ValueAtQuantile(90),
		P99: h.ValueAtQuantile(99), P999: h.ValueAtQuantile(99.9), Max: h.Max(),
	}
}
