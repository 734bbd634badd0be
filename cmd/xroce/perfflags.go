package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/perf"
	"xroce/engine"
	"xroce/engine/oob"
	"xroce/roce"
	"xroce/roce/wire"
)

// perfFlags are those of a test, by the names that perftest gives them.
type perfFlags struct {
	test   perf.Test
	c      perf.Config
	device deviceFlags
	mode   modeFlag

	iface, size, connection, atomic, output, outFile, dump string
	counters, group                                        string
	multicast                                              bool
	rateUnits, rateType, forceLink                         string
	port, ibPort, mtu, timeout, tclass, flowLabel          int
	duration, margin, sl, pkey, gap                        int
	tos, retries                                           int
	hopLimit, inlineRecv                                   int
	mmap                                                   string
	histogram, unsorted, outJSON, version, ignored         bool
	limitBW, limitMsgRate, interval                        float64
	level                                                  perf.Output
}

func newPerfFlags(test perf.Test) *perfFlags {
	return &perfFlags{test: test, c: perf.Config{Test: test}}
}

// defaults of the tool.
func (f *perfFlags) defaults() (size string, iters, txDepth, inline int) {
	size, iters, txDepth = "65536", 1000, 128
	if f.test.Latency {
		size, txDepth = "2", 1
		switch f.test.Verb {
		case perf.Write:
			inline = 220
		case perf.Send:
			inline = 236
		}
	} else if f.test.Verb == perf.Write {
		iters = 5000
	}
	if f.test.Verb == perf.Atomic {
		size = "8"
	}
	return size, iters, txDepth, inline
}

func (f *perfFlags) register(flags *pflag.FlagSet) {
	size, iters, txDepth, inline := f.defaults()
	c := &f.c
	flags.StringVarP(&f.iface, "ib-dev", "d", "", "interface (default: the one that fits)")
	flags.IntVar(&f.ibPort, "ib-port", 1, "port of the device: there is 1")
	flags.Float64VarP(&f.interval, "interval", "i", 0,
		"tell what was moved each so many seconds, of a bandwidth test")
	flags.BoolVarP(&f.c.Managed, "rdma_cm", "R", false, "connect with rdma_cm, at both ends")
	flags.BoolVarP(&f.c.ManagedExchange, "comm_rdma_cm", "z", false,
		"exchange over rdma_cm, not TCP, at both ends, but connect without it")
	flags.StringVarP(&f.counters, "report-counters", "W", "",
		"tell by how much these counters have grown, names with commas between them")
	flags.IntVarP(&f.port, "port", "p", oob.Port, "TCP port for the exchange")
	flags.StringVarP(&f.connection, "connection", "c", "RC",
		"connection type: "+connectionTypes(f.test.Verb))
	flags.IntVarP(&c.Iters, "iters", "n", iters, "messages of each QP, at least 5")
	flags.IntVarP(&f.duration, "duration", "D", 0, "run for so many seconds, not by -n")
	flags.IntVarP(&f.margin, "margin", "f", -1,
		"seconds at both ends of -D that do not count (default a quarter)")
	flags.IntVarP(&f.mtu, "mtu", "m", 0, "path MTU: 256 to 4096 (default that of the interface)")
	flags.IntVarP(&c.GIDIndex, "gid-index", "x", perf.AutoGID, "our GID; -1 for the one that fits")
	flags.BoolVar(&c.IPv6, "ipv6", false, "choose a GID of IPv6, not IPv4")
	flags.IntVarP(&f.timeout, "qp-timeout", "u", 14, "local ACK timeout, 4.096 us * 2^N")
	flags.IntVar(&f.tclass, "tclass", 0, "traffic class: DSCP and ECN")
	flags.IntVarP(&f.tos, "tos", "T", 0, "type of service, with -R: DSCP and ECN")
	flags.IntVar(&f.retries, "retry_count", perf.DefaultRetryCount,
		"tries before a peer is given up, with -R, 0 to 7")
	flags.IntVar(&f.flowLabel, "flow_label", 0, "flow label, 20 bits; 0 chooses the path by QP")
	flags.IntVarP(&f.hopLimit, "hop_limit", "L", perf.DefaultHopLimit,
		"hop limit of what is sent, the TTL of IPv4")
	f.registerMemory(flags)
	flags.StringVar(&f.output, "output", "",
		"print only a number: bandwidth, message_rate or latency")
	flags.BoolVar(&c.CPUUtil, "cpu_util", false, "tell the load of the CPUs, with -D")
	flags.BoolVar(&f.outJSON, "out_json", false, "write the report to a file as JSON, too")
	flags.StringVar(&f.outFile, "out_json_file", "perftest_out.json", "name of that file")
	flags.StringVar(&f.dump, "dump", "",
		"write the memory of the test, before and after it, to this `file`")
	flags.BoolVarP(&f.version, "version", "V", false, "print the version of the exchange")
	if f.test.Verb == perf.Atomic {
		flags.StringVarP(&f.atomic, "atomic_type", "A", string(perf.FetchAndAdd),
			"operation: CMP_AND_SWAP or FETCH_AND_ADD")
		f.size = size
	} else {
		flags.BoolVarP(&c.All, "all", "a", false, "run sizes from 2 to 2^23")
		flags.StringVarP(&f.size, "size", "s", size, "bytes of a message; K and M are units")
	}
	if f.test.Verb != perf.Write {
		flags.BoolVarP(&c.Events, "events", "e", false, "sleep on completion events, not poll")
		flags.IntVar(&f.inlineRecv, "inline_recv", roce.MaxInlineRecv,
			"longest message received inline, in its completion")
	}
	if f.test.Answered() {
		flags.IntVarP(&c.OutReads, "outs", "o", 0, "READs and atomics outstanding (default 128)")
	} else {
		flags.IntVarP(&c.Inline, "inline_size", "I", inline, "longest message sent inline")
	}
	if f.test.Verb == perf.Send {
		f.registerSend(flags)
	}
	if f.test.Latency {
		f.registerLatency(flags, txDepth)
	} else {
		f.registerBandwidth(flags, txDepth)
	}
	f.registerIgnored(flags)
	f.device.register(flags)
	f.mode.register(flags)
}

// registerMemory declares where the memory is.
func (f *perfFlags) registerMemory(flags *pflag.FlagSet) {
	c := &f.c
	flags.BoolVar(&c.ODP, "odp", false, "page memory on demand, do not touch it to register it")
	flags.BoolVar(&c.HugePages, "use_hugepages", false, "memory of reserved huge pages of 2 MiB")
	flags.StringVar(&f.mmap, "mmap", "",
		"use this `file`, mapped, as the memory; its content is lost")
	flags.Int64Var(&c.FileOffset, "mmap-offset", 0, "where the memory begins in that file")
}

// registerSend declares what only SENDs have.
func (f *perfFlags) registerSend(flags *pflag.FlagSet) {
	c := &f.c
	flags.IntVarP(&c.RxDepth, "rx-depth", "r", perf.DefaultRxDepth, "receives posted")
	flags.BoolVarP(&f.multicast, "mcg", "g", false, "with -c UD: send to a multicast group")
	flags.StringVarP(&f.group, "MGID", "M", "",
		"that group: an address, or 16 numbers with colons (default "+perfGroup4+")")
	flags.BoolVar(&c.UseSRQ, "use-srq", false, "receive from one shared queue")
}

func (f *perfFlags) registerLatency(flags *pflag.FlagSet, txDepth int) {
	flags.BoolVarP(&f.histogram, "report-histogram", "H", false, "print all samples, sorted")
	flags.BoolVarP(&f.unsorted, "report-unsorted", "U", false, "print all samples in their order")
	flags.IntVar(&f.gap, "latency_gap", 0, "microseconds before each message")
	f.c.TxDepth, f.c.QPs, f.c.CQMod, f.c.PostList, f.c.RecvPostList = txDepth, 1, 1, 1, 1
}

func (f *perfFlags) registerBandwidth(flags *pflag.FlagSet, txDepth int) {
	c := &f.c
	flags.BoolVarP(&c.Both, "bidirectional", "b", false, "measure both directions at a time")
	flags.IntVarP(&c.QPs, "qp", "q", 1, "number of QPs")
	flags.IntVarP(&c.TxDepth, "tx-depth", "t", txDepth, "sends outstanding")
	flags.IntVarP(&c.CQMod, "cq-mod", "Q", 100, "sends for one completion")
	flags.IntVarP(&c.PostList, "post_list", "l", 1, "sends posted in a row")
	flags.IntVar(&c.RecvPostList, "recv_post_list", 1, "receives posted in a row")
	flags.BoolVarP(&c.NoPeak, "noPeak", "N", false, "measure no peak bandwidth")
	flags.BoolVar(&c.Gbits, "report_gbits", false, "print Gb/s, not MiB/s")
	flags.BoolVar(&c.Separate, "report-both", false, "with -b, tell the result of each end, too")
	flags.BoolVar(&c.Reversed, "reversed", false, "the server sends")
	flags.BoolVar(&c.WarmUp, "perform_warm_up", false, "send some before measuring")
	flags.BoolVar(&c.Infinite, "run_infinitely", false, "report each -D seconds, for ever")
	flags.Float64VarP(&f.limitBW, "limit_bw", "w", 0, "fail below this bandwidth")
	flags.Float64VarP(&f.limitMsgRate, "limit_msgrate", "y", 0, "fail below this message rate")
	flags.Float64Var(&c.Rate.Value, "rate_limit", 0, "send no faster than this")
	flags.StringVar(&f.rateUnits, "rate_units", "g", "of that: M MiB/s, g Gb/s, p messages/s")
	flags.StringVar(&f.rateType, "rate_limit_type", "SW",
		"who does it: SW the loop, HW the queue pairs")
	flags.IntVar(&c.Rate.Burst, "burst_size", 0, "messages of a burst (default -t)")
}

// config makes the configuration that the flags ask for, or tells what is wrong.
func (f *perfFlags) config(flags *pflag.FlagSet, dial bool) (perf.Config, error) {
	c := f.c
	c.Dial = dial
	if err := f.refuse(flags); err != nil {
		return c, err
	}
	var ok bool
	if c.Type, ok = lookup(f.connection, roce.TypeRC, roce.TypeUC, roce.TypeUD,
		roce.TypeRawPacket); !ok {
		return c, usagef("-c %s: there are RC, UC, UD and RAW_PACKET", f.connection)
	}
	var err error
	if c.Size, err = parseSize(f.size); err != nil {
		return c, usagef("-s: %v", err)
	}
	if f.mtu != 0 {
		if c.MTU, ok = wire.MTUFromBytes(f.mtu); !ok {
			return c, usagef("-m %d: there are 256, 512, 1024, 2048 and 4096", f.mtu)
		}
	}
	for _, r := range []struct {
		flag             string
		value, low, high int
	}{
		{"-u", f.timeout, 0, 31},
		{"--tclass", f.tclass, 0, 255},
		{"-T", f.tos, 0, 255},
		{"--retry_count", f.retries, 0, 7},
		{"--flow_label", f.flowLabel, 0, 1<<20 - 1},
		{"-x", c.GIDIndex, perf.AutoGID, 255},
		{"-L", f.hopLimit, 1, 255},
		{"--inline_recv", f.inlineRecv, 0, roce.MaxInlineRecv},
		{"--ib-port", f.ibPort, 1, 1},
		{"-D", f.duration, 0, 1 << 20},
		{"-f", f.margin, -1, 1 << 20},
		{"--latency_gap", f.gap, 0, 1 << 30},
	} {
		if r.value < r.low || r.value > r.high {
			return c, usagef("%s %d is not in %d..%d", r.flag, r.value, r.low, r.high)
		}
	}
	c.Timeout, c.TClass, c.FlowLabel = uint8(f.timeout), uint8(f.tclass), uint32(f.flowLabel)
	if flags.Changed("tos") {
		c.TClass = uint8(f.tos)
	}
	c.HopLimit, c.Retries = uint8(f.hopLimit), uint8(f.retries)
	if c.InlineRecv = f.inlineRecv; c.InlineRecv == 0 && f.test.Verb != perf.Write {
		c.InlineRecv = engine.NoInlineRecv
	}
	if !(f.interval >= 0 && f.interval <= perf.MaxInterval.Seconds()) {
		return c, usagef("-i %g is no interval", f.interval)
	}
	c.Interval = time.Duration(f.interval * float64(time.Second))
	c.Gap = time.Duration(f.gap) * time.Microsecond
	f.setDuration(&c)
	if err := f.setRate(&c); err != nil {
		return c, err
	}
	switch {
	case f.unsorted:
		c.Samples = perf.SamplesUnsorted
	case f.histogram:
		c.Samples = perf.SamplesSorted
	}
	if c.Atomic = perf.AtomicType(f.atomic); f.test.Verb == perf.Atomic &&
		c.Atomic != perf.FetchAndAdd && c.Atomic != perf.CmpAndSwap {
		return c, usagef("-A %s: there are CMP_AND_SWAP and FETCH_AND_ADD", f.atomic)
	}
	if f.test.Verb != perf.Send {
		c.RxDepth = 1 // no receive is ever needed
	}
	if c.Type == roce.TypeUD && c.Test.Latency && !flags.Changed("inline_size") {
		c.Inline = 188
	}
	return c, errors.Join(f.checkLimits(&c), f.setOutput(&c), f.setGroup(&c))
}

// setOutput decides what is told.
func (f *perfFlags) setOutput(c *perf.Config) error {
	if f.dump != "" && (c.All || c.UseSRQ) {
		return usagef("--dump is for one size (not -a) and for receives of each QP " +
			"(not --use-srq): else nobody can tell what is where")
	}
	if f.dump != "" && c.Infinite {
		return usagef("--dump is of a test that has an end, and --run_infinitely has none")
	}
	if f.dump != "" && (c.Type == roce.TypeRawPacket || f.multicast) {
		return usagef("--dump is for queue pairs that talk to each other: of frames (-c " +
			"RAW_PACKET) and groups (-g) there is no telling whose is what")
	}
	var ok bool
	if f.level, ok = perfOutputs[f.output]; !ok || !f.fits(f.level) {
		return usagef("--output %s: there are bandwidth and message_rate for bandwidth tests, "+
			"latency for latency tests", f.output)
	}
	return nil
}

// setDuration makes it a run by duration, if it is one.
func (f *perfFlags) setDuration(c *perf.Config) {
	seconds := f.duration
	if c.Infinite && seconds == 0 {
		seconds = 5
	}
	if seconds == 0 {
		return
	}
	margin := f.margin
	if margin < 0 {
		margin = seconds / 4
	}
	c.Duration = time.Duration(seconds) * time.Second
	c.Margin = time.Duration(margin) * time.Second
}

func (f *perfFlags) setRate(c *perf.Config) error {
	switch {
	case f.test.Latency: // it has no such flags
		return nil
	case !slices.Contains(perfRateUnits, f.rateUnits):
		return usagef("--rate_units %s: there are %s", f.rateUnits, words(perfRateUnits))
	case !slices.Contains(perfRateTypes, f.rateType):
		return usagef("--rate_limit_type %s: there are %s", f.rateType, words(perfRateTypes))
	case c.Rate.On():
		c.Rate.Units, c.Rate.Paced = f.rateUnits[0], f.rateType == "HW"
	}
	return nil
}

// parseSize reads a number of bytes, with K or M behind it as a unit.
func parseSize(text string) (int, error) {
	unit := 1
	number := text
	switch {
	case strings.HasSuffix(strings.ToUpper(text), "K"):
		number, unit = text[:len(text)-1], 1<<10
	case strings.HasSuffix(strings.ToUpper(text), "M"):
		number, unit = text[:len(text)-1], 1<<20
	}
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 || n > roce.MaxMessage/unit {
		return 0, fmt.Errorf("%q is no size", text)
	}
	return n * unit, nil
}

// checkLimits refuses limits that no result is below, and where there is no result.
func (f *perfFlags) checkLimits(c *perf.Config) error {
	for _, limit := range []struct {
		flag  string
		value float64
	}{{"--limit_bw", f.limitBW}, {"--limit_msgrate", f.limitMsgRate}} {
		switch {
		case !(limit.value >= 0):
			return usagef("%s %g is no limit", limit.flag, limit.value)
		case limit.value > 0 && c.Infinite:
			return usagef("%s does not go with --run_infinitely, which never ends by itself",
				limit.flag)
		}
	}
	return nil
}

// limits fails when the result is below what was asked for.
func (f *perfFlags) limits(rows []perf.Row) error {
	for _, r := range rows {
		switch {
		case r.Average < f.limitBW:
			return fmt.Errorf("bandwidth %.2f is below the limit of %.2f", r.Average, f.limitBW)
		case r.MsgRate < f.limitMsgRate:
			return fmt.Errorf("message rate %.6f is below the limit of %.6f", r.MsgRate,
				f.limitMsgRate)
		}
	}
	return nil
}
