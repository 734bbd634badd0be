package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/gen"
)

// pktgenFlags are what `xroce pktgen` was asked.
type pktgenFlags struct {
	plan     traffic.Plan
	flow     traffic.PlanFlow
	step     traffic.PlanStep
	port     portFlags
	interval float64
	batch    int
	busy     bool
	transmit string
	maxLoss  lossFlag
	scenario string
	rfc2544  bool
	plot     string
	conn     connFlags
	replay   replayFlags
}

func (f *pktgenFlags) register(flags *pflag.FlagSet) {
	f.port.register(flags, "send from", false)
	flags.IntVar(&f.port.Queues, "queues", 1, "queues to send on, from --queue on")
	flags.StringVar(&f.plan.To, "to", "", "`host` to send to, or MAC address of raw frames")
	flags.StringVarP(&f.scenario, "scenario", "f", "",
		"`file` that says what to send, in place of flags; - for stdin")
	flags.StringVar(&f.flow.Kind, "kind", "udp", "what to send: udp, ethernet, roce or pfc")
	flags.StringVar(&f.flow.Format, "format", "",
		"encapsulate frames: one of 'xroce encap list' that is native or of UD")
	flags.StringVar(&f.flow.Size, "size", "", "bytes of a frame without FCS (default 64, roce 128)")
	flags.StringVar(&f.step.Rate, "rate", "max", "how fast, as 10kpps, 1gbps, 50% or 1kpps..9kpps")
	flags.StringVar(&f.plan.LineRate, "line-rate", "",
		"of which a rate can be a percentage, as 10gbps")
	flags.DurationVar(&f.step.Duration, "duration", 0, "how long (default until Ctrl-C)")
	flags.Uint64VarP(&f.plan.Count, "count", "n", 0, "end behind so many frames")
	flags.IntVar(&f.plan.Burst, "burst", 1, "frames that go at once")
	flags.IntVar(&f.flow.Flows, "flows", 1, "flows, with source ports or QPs that follow")
	flags.Uint64Var(&f.plan.Seed, "seed", 1, "of what is by chance")
	flags.Uint16Var(&f.flow.Port, "port", gen.DefaultPort, "UDP destination port")
	flags.Uint16Var(&f.flow.EtherType, "ethertype", gen.DefaultEtherType, "of raw frames")
	flags.Uint16Var(&f.flow.VLAN, "vlan", 0, "VLAN (default that of the route)")
	flags.Uint8Var(&f.flow.Priority, "priority", 0, "of the VLAN tag, 0 to 7")
	flags.Uint8Var(&f.flow.TOS, "tos", 0, "TOS or traffic class: DSCP and, in two bits, ECN")
	flags.Uint8Var(&f.flow.TTL, "ttl", 64, "TTL or hop limit")
	flags.StringVar(&f.flow.Payload, "payload", "zeros",
		"what fills frames: zeros, count, random or bytes that repeat, as 0xdeadbeef")
	flags.StringArrayVar(&f.flow.Vary, "vary", nil, "`field=values` that vary, may be repeated")
	flags.StringArrayVar(&f.flow.Faults, "fault", nil, "`fault=N` each N frames, or N%")
	flags.UintSliceVar(&f.flow.PFC.Priorities, "pfc-priorities", []uint{3},
		"priorities that frames of flow control are about")
	flags.Uint16Var(&f.flow.PFC.Quanta, "pfc-quanta", 0xffff,
		"how long these wait, in times of 512 bits; 0 to go on")
	f.registerRoCE(flags)
	f.conn.register(flags)
	f.replay.register(flags)
	flags.BoolVar(&f.rfc2544, "rfc2544", false,
		"search the largest rate that loses no more than --max-loss, for each size")
	flags.StringVar(&f.plot, "plot", "", "with --rfc2544, draw what was found to this SVG `file`")
	flags.Float64VarP(&f.interval, "interval", "i", 0, "print a row each so many seconds")
	flags.StringVar(&f.transmit, "transmit", "auto", "how frames leave: auto, xdp (live frames "+
		"of an XDP program) or socket (AF_XDP)")
	flags.IntVar(&f.batch, "batch", 0, fmt.Sprintf(
		"most frames of one system call (default %d, of live frames %d)", socketBatch, liveBatch))
	flags.BoolVar(&f.busy, "busy", false, "never sleep: exact times, one CPU always busy")
	flags.Var(&f.maxLoss, "max-loss", "fail when the sink lost more than this `percent`")
}

func (f *pktgenFlags) registerRoCE(flags *pflag.FlagSet) {
	r := &f.flow.RoCE
	flags.StringSliceVar(&r.Opcodes, "opcodes", nil,
		"sequence of RoCE packets, as RC_SEND_FIRST,RC_SEND_LAST (default UD_SEND_ONLY)")
	flags.BoolVar(&r.V1, "roce-v1", false, "RoCE v1 packets, which a sink takes with --ethertype "+
		"0x8915")
	flags.Uint32Var(&r.DestQP, "dest-qp", 0, "destination QP of RoCE packets")
	flags.Uint32Var(&r.SrcQP, "src-qp", 0, "source QP of datagrams")
	flags.Uint32Var(&r.PSN, "psn", 0, "first PSN")
	flags.Uint16Var(&r.PKey, "pkey", 0xffff, "P_Key")
	flags.Uint32Var(&r.QKey, "qkey", 0x11111111, "Q_Key of datagrams")
	flags.IntVar(&r.MTU, "mtu", 1024, "path MTU: payload of FIRST and MIDDLE packets")
	flags.Uint64Var(&r.VA, "va", 0, "address of WRITEs, READs and atomics")
	flags.Uint32Var(&r.RKey, "rkey", 0, "key of that")
	flags.Uint32Var(&r.ReadLen, "read-length", 0, "bytes of a READ (default the path MTU)")
	flags.BoolVar(&r.AckReq, "ack-request", false, "each message asks for an acknowledge")
}

// check refuses what makes no plan, and completes it.
func (f *pktgenFlags) check(flags *pflag.FlagSet, a *app) error {
	if f.scenario != "" {
		if err := f.load(flags, a); err != nil {
			return err
		}
	} else {
		f.plan.Steps = []traffic.PlanStep{f.step}
		f.plan.Flows = []traffic.PlanFlow{f.flow}
	}
	if err := f.port.check(); err != nil {
		return err
	}
	switch {
	case f.plan.To == "":
		return usagef("--to: name the host to send to")
	case f.batch < 0 || f.batch > liveBatch || f.batch == 0 && flags.Changed("batch"):
		return usagef("--batch %d is not in 1..%d", f.batch, liveBatch)
	case f.port.Queues < 1 || f.port.Queues > maxQueues:
		return usagef("--queues %d is not in 1..%d", f.port.Queues, maxQueues)
	case f.port.Queues > 1 && (f.rfc2544 || f.conn.stateful || f.conn.connect != 0 ||
		f.replay.file != ""):
		return usagef("--queues: searches, connections and captures are sent on one")
	case f.plan.Burst < 1:
		return usagef("--burst %d is not above 0", f.plan.Burst)
	case f.flow.Flows < 1:
		return usagef("--flows %d is not above 0", f.flow.Flows)
	case f.interval < 0 || f.interval > maxInterval:
		return usagef("-i %g is not in 0..%d", f.interval, int(maxInterval))
	case f.interval > 0 && a.json:
		return usagef("-i prints rows for people, --json one document")
	case f.step.Duration < 0 || flags.Changed("duration") && f.step.Duration == 0:
		return usagef("--duration %s is not above 0", f.step.Duration)
	}
	if _, err := f.plan.Schedule(1); err != nil {
		return usageError{err}
	}
	if err := f.conn.check(flags, &f.plan); err != nil {
		return err
	}
	if err := f.replay.check(flags, &f.flow); err != nil {
		return err
	}
	if err := f.checkTransmit(); err != nil {
		return err
	}
	if err := f.checkSearch(flags); err != nil {
		return err
	}
	return f.checkCounted()
}

// checkTransmit decides how frames leave. A run costs the kernel more than a call of a socket, and
// less for each frame: so live frames are for many at once, unless told otherwise.
func (f *pktgenFlags) checkTransmit() error {
	way, ok := lookup(f.transmit, traffic.ByEither, traffic.ByXDP, traffic.BySocket)
	fast := f.plan.Fast() && (f.replay.file == "" || f.replay.times == 0)
	switch {
	case !ok:
		return usagef("no --transmit %q: there are auto, xdp and socket", f.transmit)
	case way == traffic.ByEither && (!fast || f.rfc2544 || f.conn.stateful):
		way = traffic.BySocket
	}
	f.port.Transmit = way
	return nil
}

// batchOf is how many frames are made for one system call.
func (f *pktgenFlags) batchOf(port *traffic.SendPort) int {
	way, _ := port.Way()
	switch {
	case f.batch > 0:
		return f.batch
	case way == traffic.ByXDP:
		return liveBatch
	}
	return socketBatch
}

// checkSearch refuses what no search can have.
func (f *pktgenFlags) checkSearch(flags *pflag.FlagSet) error {
	if !f.rfc2544 {
		if f.plot != "" {
			return usagef("--plot is for --rfc2544")
		}
		return nil
	}
	for _, name := range []string{"rate", "count", "scenario", "interval", "fault"} {
		if flags.Changed(name) {
			return usagef("--%s and --rfc2544: the search decides what is sent", name)
		}
	}
	if f.step.Duration == 0 {
		f.step.Duration = defaultTrial
	}
	return nil
}

// checkCounted refuses to ask a sink for what it cannot know.
func (f *pktgenFlags) checkCounted() error {
	var who string
	switch {
	case f.rfc2544:
		who = "--rfc2544"
	case f.maxLoss.set:
		who = "--max-loss"
	}
	if who == "" || f.plan.Counted() {
		return nil
	}
	return usagef("%s: a sink can count none of these: they have no payload for a signature", who)
}

// Bounds of flags, and the batches that there are by default.
const (
	liveBatch   = 1024
	socketBatch = 64
	maxInterval = 3600 // seconds
)

// A lossFlag is the loss that is not a failure, in percent.
type lossFlag struct {
	percent float64
	set     bool
}

// String is the number for the help.
func (f *lossFlag) String() string {
	if !f.set {
		return ""
	}
	return strconv.FormatFloat(f.percent, 'g', -1, 64)
}

// Type is what the help calls the value.
func (*lossFlag) Type() string { return "percent" }

// Set parses a percentage, with the sign or without.
func (f *lossFlag) Set(text string) error {
	v, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
	if err != nil || !(v >= 0 && v <= 100) { // NaN is neither
		return fmt.Errorf("%q is no percentage", text)
	}
	f.percent, f.set = v, true
	return nil
}

// judge is the error of a loss in percent, nil for a loss that nobody knows.
func (f *lossFlag) judge(loss *float64) error {
	switch {
	case !f.set:
		return nil
	case loss == nil:
		return errNoReport
	case *loss > f.percent:
		return fmt.Errorf("%.4g %% of the frames were lost, and --max-loss is %g %%", *loss,
			f.percent)
	}
	return nil
}
