package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// fuzzFlags are what `xroce fuzz` was asked.
type fuzzFlags struct {
	port        portFlags
	seed, first uint64
	count       uint64
	rate        string
	qps         []uint
	wait        time.Duration
	schedule    *gen.Schedule
}

func (a *app) fuzzCommand() *cobra.Command {
	var f fuzzFlags
	c := &cobra.Command{
		Use:   "fuzz -d IFACE HOST",
		Short: "Send malformed RoCE packets to a peer that is yours, and tell what it did",
		Long: `Send malformed RoCE v2 packets to a host, and count what it answers. Use it on hosts
that are yours alone: the packets are meant to find faults, and can end connections, change
memory that is registered for remote access, and worse where there is a fault.

The packet of a number is the same for the same --seed, addresses and --dest-qp, so a run
is repeated with them, and a part of it with --first and -n. Most packets have a right
ICRC, so that they get beyond its check:

  nothing   may be right          opcode    any of the 256
  headers   bytes by chance       length    ends early, or has more than it may
  pad       padding and version   reach     addresses and lengths at their limits
  pkey      another partition     mad       bytes by chance for management
  claims    lengths of IP and UDP that are not so
  bits      changed on the way, with the ICRC of before

Meanwhile RoCE v2 packets that arrive on the interface, UDP datagrams to port 4791 of whatever
address, are taken from the kernel, and counted.`,
		Example: `  xroce fuzz -d eth0 192.0.2.2
  xroce fuzz -d eth0 --seed 7 -n 1000000 --rate 100kpps --dest-qp 0x11,0x12 192.0.2.2 --json
  xroce fuzz -d eth0 --seed 7 --first 4711 -n 1 192.0.2.2     # one packet again`,
		Args: cobra.ExactArgs(1),
	}
	f.register(c.Flags())
	return a.command(c, func(ctx context.Context, args []string) error {
		if err := f.check(); err != nil {
			return err
		}
		return a.fuzz(ctx, &f, args[0])
	})
}

func (f *fuzzFlags) register(flags *pflag.FlagSet) {
	f.port.register(flags, "send from", true)
	flags.Uint64Var(&f.seed, "seed", 1, "of what is by chance")
	flags.Uint64Var(&f.first, "first", 0, "number of the first packet")
	flags.Uint64VarP(&f.count, "count", "n", 10000, "packets")
	flags.StringVar(&f.rate, "rate", "1kpps", "how fast, as pktgen has it")
	flags.Var(numbers(&f.qps), "dest-qp",
		"QPs of the peer to aim at, beside others by chance")
	flags.DurationVar(&f.wait, "wait", 200*time.Millisecond,
		"how long to wait for the last answers")
}

// check refuses what cannot be.
func (f *fuzzFlags) check() (err error) {
	if err := f.port.check(); err != nil {
		return err
	}
	f.port.Answers = true
	rate, err := gen.ParseRate(f.rate)
	switch {
	case err != nil:
		return usageError{err}
	case f.count < 1:
		return usagef("-n %d is not above 0", f.count)
	case f.wait < 0 || f.wait > time.Minute:
		return usagef("--wait %s is not in 0..1m", f.wait)
	}
	for _, qp := range f.qps {
		if qp > 0xffffff {
			return usagef("--dest-qp %#x has more than 24 bits", qp)
		}
	}
	if f.schedule, err = gen.NewSchedule(1, gen.Step{From: rate}); err != nil {
		return usageError{err}
	}
	return nil
}

// fuzzReport is what `xroce fuzz --json` prints.
type fuzzReport struct {
	Device  string            `json:"device"`
	Host    string            `json:"host"`
	Seed    uint64            `json:"seed"`
	First   uint64            `json:"first"`
	Sent    uint64            `json:"sent"`
	Seconds float64           `json:"seconds"`
	Made    map[string]uint64 `json:"mutations"`
	Answers uint64            `json:"answers"`
	Opcodes map[string]uint64 `json:"answers_by_opcode"`
	NAKs    map[string]uint64 `json:"answers_by_syndrome"`
	Damaged uint64            `json:"damaged_answers"`
	Others  uint64            `json:"packets_of_others"`

	attachReport
}

// fuzz sends and counts.
func (a *app) fuzz(ctx context.Context, f *fuzzFlags, to string) error {
	port, err := a.openSender(ctx, &f.port, to)
	if err != nil {
		return advise(err, f.port.Interface)
	}
	defer port.Close()
	if port.Route.Path.Dst.IsZero() {
		return usagef("%s: name a host by its name or IP address", to)
	}
	qps := make([]uint32, 0, len(f.qps))
	for _, qp := range f.qps {
		qps = append(qps, uint32(qp))
	}
	path := port.Route.Path
	path.HopLimit = 64
	// The port of answers is another one each time, and the packets are to be the same.
	path.SrcPort = wire.SourcePort(0, uint32(f.seed), 1)
	fuzzer, err := gen.NewFuzzer(path, port.Route.MaxFrame, f.seed, f.first, qps)
	if err != nil {
		return err
	}
	answered := &traffic.Answered{Link: port.Link, Peer: path.Dst}
	s := &traffic.Sender{
		Link: port.Link, Other: fuzzer, Schedule: f.schedule, Count: f.count, Batch: 1,
		Clock: traffic.NewSystem(false), Meanwhile: answered.Poll,
	}
	sent, err := s.Run(ctx)
	if err != nil {
		return err
	}
	for end := a.now().Add(f.wait); ctx.Err() == nil && a.now().Before(end); {
		if err := errors.Join(answered.Poll(), port.Link.Wait(10*time.Millisecond)); err != nil {
			return err
		}
	}
	r := newFuzzReport(f, fuzzer, answered, sent)
	r.Device, r.Host, r.attachReport = port.Name, to, newAttachReport(port)
	if err := a.printFuzz(&r); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func newFuzzReport(f *fuzzFlags, fuzzer *gen.Fuzzer, a *traffic.Answered, sent traffic.Sent,
) fuzzReport {
	r := fuzzReport{
		Seed: f.seed, First: f.first, Sent: sent.Frames,
		Seconds: float64(sent.Duration) / float64(clock.Second),
		Made:    map[string]uint64{}, Opcodes: map[string]uint64{}, NAKs: map[string]uint64{},
		Damaged: a.Damaged, Others: a.Others,
	}
	for m, n := range fuzzer.Made() {
		if n > 0 {
			r.Made[gen.Mutation(m).String()] = n
		}
	}
	for op, n := range a.Opcodes {
		if n > 0 {
			r.Opcodes[wire.Opcode(op).String()] = n
			r.Answers += n
		}
	}
	for syndrome, n := range a.Syndromes {
		if n > 0 {
			r.NAKs[wire.Syndrome(syndrome).String()] = n
		}
	}
	return r
}

// printFuzz prints what was sent and what came of it.
func (a *app) printFuzz(r *fuzzReport) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printf("%s to %s: packets %d to %d of seed %d in %.3f s\n", r.Device, r.Host, r.First,
		r.First+r.Sent-min(1, r.Sent), r.Seed, r.Seconds)
	for m := range gen.NumMutations {
		if n := r.Made[m.String()]; n > 0 {
			a.printf("  %-8s %10d\n", m, n)
		}
	}
	a.printf("answers: %d\n", r.Answers)
	for op := range 256 {
		if n := r.Opcodes[wire.Opcode(op).String()]; n > 0 {
			a.printf("  %-24s %10d\n", wire.Opcode(op), n)
		}
	}
	for s := range 256 {
		if n := r.NAKs[wire.Syndrome(s).String()]; n > 0 && !wire.Syndrome(s).IsACK() {
			a.printf("  of these %-15s %10d\n", wire.Syndrome(s), n)
		}
	}
	if r.Damaged > 0 {
		a.printf("damaged packets that came: %d\n", r.Damaged)
	}
	a.printAttach(&r.attachReport)
	return nil
}
