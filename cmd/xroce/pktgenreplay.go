package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// replayFlags say what is sent of a capture.
type replayFlags struct {
	file  string
	speed string
	from  string
	qps   []string

	times float64 // of the speed, 0 for as fast as it goes
	gid   wire.GID
	pairs map[uint32]uint32
}

func (f *replayFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.file, "replay", "", "send the RoCE packets of this capture `file`")
	flags.StringVar(&f.speed, "speed", "1", "of --replay: `times` as fast as captured, or max")
	flags.StringVar(&f.from, "from", "",
		"of --replay: whose packets (default the sender of the first)")
	flags.StringArrayVar(&f.qps, "map-qp", nil,
		"of --replay: another number for a QP, as `0x11=0x22`, may be repeated")
}

// besideReplay are the flags that go with --replay. Of those that rewrite, only those that are
// given do.
var besideReplay = map[string]bool{
	"replay": true, "speed": true, "from": true, "map-qp": true, "device": true, "to": true,
	"queue": true, "xsk-mode": true, "batch": true, "transmit": true, "capture": true,
	"metrics": true, "busy": true, "count": true, "dest-qp": true,
	"psn": true, "pkey": true, "qkey": true, "rkey": true, "va": true, "tos": true, "vlan": true,
	"priority": true, "roce-v1": true, "json": true, "verbose": true, "log-format": true,
}

// check refuses what cannot be.
func (f *replayFlags) check(flags *pflag.FlagSet, flow *traffic.PlanFlow) (err error) {
	if f.file == "" {
		for _, name := range []string{"speed", "from", "map-qp"} {
			if flags.Changed(name) {
				return usagef("--%s is for --replay", name)
			}
		}
		return nil
	}
	flags.Visit(func(flag *pflag.Flag) {
		if err == nil && !besideReplay[flag.Name] {
			err = usagef("--%s and --replay: the capture says what to send", flag.Name)
		}
	})
	if err != nil {
		return err
	}
	if flow.VLAN > 4094 || flow.Priority > 7 {
		return usagef("VLAN %d, priority %d: there are 1 to 4094, and 0 to 7", flow.VLAN,
			flow.Priority)
	}
	if f.speed != "max" {
		text := strings.TrimSuffix(f.speed, "x")
		if f.times, err = strconv.ParseFloat(text, 64); err != nil || !(f.times >= 1e-6) ||
			f.times > 1e9 {
			return usagef("--speed %s: how many times as fast, as 1, 0.5 or 10, or max", f.speed)
		}
	}
	if f.from != "" {
		a, err := netip.ParseAddr(f.from)
		if err != nil {
			return usagef("--from %s: %w", f.from, err)
		}
		f.gid = wire.GIDFromAddr(a.Unmap().WithZone(""))
	}
	f.pairs = map[uint32]uint32{}
	for _, text := range f.qps {
		old, to, ok := strings.Cut(text, "=")
		a, err1 := strconv.ParseUint(old, 0, 24)
		b, err2 := strconv.ParseUint(to, 0, 24)
		if !ok || err1 != nil || err2 != nil {
			return usagef("--map-qp %s: want two numbers of 24 bits, as 0x11=0x22", text)
		}
		f.pairs[uint32(a)] = uint32(b)
	}
	return nil
}

// rewrite is what packets get in place of what they had.
func (f *pktgenFlags) rewrite(flags *pflag.FlagSet, route traffic.Route) gen.Rewrite {
	r := &f.flow.RoCE
	w := gen.Rewrite{Path: route.Path, QPs: f.replay.pairs}
	if flags.Changed("dest-qp") {
		w.DestQP = &r.DestQP
	}
	if flags.Changed("psn") {
		psn := wire.PSN(r.PSN)
		w.PSN = &psn
	}
	if flags.Changed("pkey") {
		w.PKey = &r.PKey
	}
	if flags.Changed("qkey") {
		w.QKey = &r.QKey
	}
	if flags.Changed("rkey") {
		w.RKey = &r.RKey
	}
	if flags.Changed("va") {
		w.VA = &r.VA
	}
	if flags.Changed("tos") {
		w.TOS = &f.flow.TOS
	}
	if f.flow.VLAN > 0 {
		w.Path.Tags = wire.VLAN(f.flow.VLAN).Tags(0)
	}
	w.Path.Tags = w.Path.Tags.WithPriority(f.flow.Priority)
	if r.V1 {
		w.Path.Framing = wire.FramingV1
	}
	return w
}

// replayReport is what a replay adds to `xroce pktgen --json`.
type replayReport struct {
	From    string `json:"from"`
	Read    uint64 `json:"packets_read"`
	Others  uint64 `json:"packets_of_others"`
	Foreign uint64 `json:"packets_not_roce"`
	Cut     uint64 `json:"packets_cut"`
	Long    uint64 `json:"packets_too_long"`
	BadICRC uint64 `json:"packets_bad_icrc"`
}

// pktgenReplay sends the packets of a capture and reports.
func (a *app) pktgenReplay(ctx context.Context, f *pktgenFlags, flags *pflag.FlagSet) error {
	in, err := a.openCaptureInput(f.replay.file, 0)
	if err != nil {
		return err
	}
	defer in.close()
	if a.reads(in, f.port.capture) {
		return usagef("--capture %s is the capture that is sent", f.port.capture)
	}
	port, err := a.openSender(ctx, &f.port, f.plan.To)
	if err != nil {
		return advise(err, f.port.Interface)
	}
	defer port.Close()
	if port.Route.Path.Dst.IsZero() {
		return usagef("--to %s: packets go to a host, by its name or IP address", f.plan.To)
	}
	w, err := gen.NewRewriter(f.rewrite(flags, port.Route), port.Route.MaxFrame)
	if err != nil {
		return usageError{err}
	}
	s := &traffic.Replay{
		Link: port.Link, From: f.replay.gid, Reader: in.reader, Rewriter: w,
		Speed: f.replay.times, Count: f.plan.Count, Batch: f.batchOf(port),
		Clock: traffic.NewSystem(f.busy),
	}
	got, failed := s.Run(ctx)
	r := newPktgenReport(port, f, nil, got.Sent)
	r.Replay = &replayReport{
		From: got.From.Addr().String(), Read: got.Read, Others: got.Others, Foreign: got.Foreign,
		Cut: got.Cut, Long: got.Long, BadICRC: got.BadICRC,
	}
	if err := a.printReplay(&r); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("%s: after %d packets: %w", f.replay.file, got.Read, failed)
	}
	return context.Cause(ctx)
}

// reads reports whether an input is the regular file of a name, which would be lost if it were
// written.
func (a *app) reads(in *captureInput, name string) bool {
	file := in.file
	if stdin, ok := a.stdin.(*os.File); ok && file == nil {
		file = stdin
	}
	if file == nil || name == "" {
		return false
	}
	ours, err := file.Stat()
	there, failed := os.Stat(name)
	return err == nil && failed == nil && ours.Mode().IsRegular() && os.SameFile(ours, there)
}

// printReplay prints what came of a capture.
func (a *app) printReplay(r *pktgenReport) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printRates(r)
	p := r.Replay
	a.printf("of %d packets those of %s\n", p.Read, p.From)
	for _, n := range []struct {
		what string
		n    uint64
	}{
		{"left out: of others", p.Others},
		{"left out: no RoCE", p.Foreign},
		{"left out: cut", p.Cut},
		{"left out: too long", p.Long},
		{"with a wrong ICRC", p.BadICRC},
	} {
		if n.n > 0 {
			a.printf("  %-22s %d\n", n.what, n.n)
		}
	}
	return nil
}
