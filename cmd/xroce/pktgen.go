package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/roce/clock"
	"xroce/roce/gen"
)

// pktgenExample is what the help shows.
const pktgenExample = `  xroce pktgen -d eth0 --to 192.0.2.2 --rate 10kpps --duration 1s --json
  xroce pktgen -d eth0 --to 192.0.2.2 --size imix --rate 1gbpsl1 -i 1
  xroce pktgen -d eth0 --to 192.0.2.2 --flows 64 --queues 8 --rate max --duration 10s
  xroce pktgen -d eth0 --to 192.0.2.2 --vary src_port=1024-2047 --rate max --duration 5s
  xroce pktgen -d eth0 --to 192.0.2.2 --kind roce --opcodes UC_WRITE_FIRST,UC_WRITE_LAST \
      --dest-qp 0x11 --rkey 0x1234 --fault gap=1000 --rate 1kpps..50kpps --duration 10s
  xroce pktgen -d eth0 --to 192.0.2.2 --format vnic --dest-qp 0x11 --size 64-1300 -n 10000
  xroce pktgen -d eth0 --to 192.0.2.2 --connect --fault gap=100 -n 10000   # to xroce perf write-bw
  xroce pktgen -d eth0 --to 192.0.2.2 --replay trace.pcapng --speed 10 --dest-qp 0x11 --psn 0
  xroce pktgen -d eth0 --scenario mix.yaml
  xroce pktgen -d eth0 --to 192.0.2.2 --rfc2544 --plot found.svg`

func (a *app) pktgenCommand() *cobra.Command {
	var f pktgenFlags
	c := &cobra.Command{
		Use:   "pktgen -d IFACE --to HOST",
		Short: "Send frames for testing: UDP, raw Ethernet or RoCE, at a rate",
		Long: `Send frames over an AF_XDP socket, or past it: UDP datagrams, raw Ethernet frames, or
RoCE packets whose PSNs and ICRCs are right. Each carries the number of its flow, its place in that
and the time in its payload, from which 'xroce sink' at the other end tells loss,
duplicates, order, latency and jitter, and answers how many came. But for connections no XDP
program is attached, and what arrives on the interface goes on to the kernel.

Rates are numbers with pps, kpps, mpps, bps, kbps, mbps, gbps as TRex has them: bits of
frames without FCS, or with l1 behind them on the wire, with preamble, FCS and gap; or N%
of --line-rate; or max. A..B goes from one to the other. Sizes are bytes of the frame
without FCS: one, a range 64-1500 or 64-1500/4, by chance random:64-1500, imix, or a list
of numbers and ranges, which may be repeated: 64*7,594*4,1514. --vary takes such values for a
field, and --fault makes mistakes on purpose: each N frames, or N% by chance. The same --seed
makes the same frames.

  fields   src_mac dst_mac vlan tos ttl src_ip dst_ip src_port dst_port
           dest_qp rkey va pkey
  faults   gap duplicate swap bad_icrc bad_key order

--format puts frames into the headers of InfiniBand: raw, raw6 or rawgrh in native packets, eoib,
ipoib or vnic in datagrams for --dest-qp, long ones in segments. 'xroce sink' is told it, too.

--stateful keeps connections of RC with a queue pair that somebody made ready for --qpn and
--psn: it waits for answers with a window, and sends again what is lost. --connect does so
with a server of perftest ('ib_write_bw', 'xroce perf write-bw'), which tells its queue
pairs, and to whose memory --va is an offset. Faults are then what the peer has to recover
from; 'bad_key' and 'order' end the connection with its NAK. For answers all RoCE v2 packets
that arrive are taken from the kernel, UDP datagrams to port 4791 of whatever address, and with
--roce-v1 those of RoCE v1, EtherType 0x8915.

--replay sends the RoCE packets that one host sent in a capture, with the addresses of the
way to --to and a right ICRC, --speed times as fast. --dest-qp, --map-qp, --psn (of the first
request to each QP), --va (the first address), --rkey, --pkey, --qkey and --tos replace what
packets have where they are given. A packet whose ICRC was wrong goes with a wrong one.

--transmit says how frames leave: socket is AF_XDP, xdp are live frames of an XDP program, without
a socket buffer for each, which the interface has to take (a veth device does when its peer
has an XDP program or GRO). auto is xdp where that works for rates from 500kpps on and max, but
for --connect, --stateful and --rfc2544, and else socket; it says when it does not work.

--rfc2544 searches, for each size of --size or of RFC 2544, the largest rate at which no more
is lost than --max-loss, in trials of --duration, as a sink with --keep tells.

Exit codes: 0 it sent everything, 1 it could not, or more was lost than --max-loss; 130
interrupted, with the totals.`,
		Example: pktgenExample,
		Args:    cobra.NoArgs,
	}
	f.register(c.Flags())
	return a.command(c, func(ctx context.Context, _ []string) error {
		if err := f.check(c.Flags(), a); err != nil {
			return err
		}
		switch {
		case f.rfc2544:
			return a.rfc2544(ctx, &f)
		case f.replay.file != "":
			return a.pktgenReplay(ctx, &f, c.Flags())
		case f.conn.stateful:
			return a.pktgenStateful(ctx, &f)
		}
		return a.pktgen(ctx, &f)
	})
}

// pktgenReport is what `xroce pktgen --json` prints. Received and Lost are null when no sink
// told.
type pktgenReport struct {
	Device   string   `json:"device"`
	To       string   `json:"to"`
	Flows    int      `json:"flows"`
	Seed     uint64   `json:"seed"`
	Seconds  float64  `json:"seconds"`
	Sent     uint64   `json:"sent"`
	Bytes    uint64   `json:"bytes"`
	Dropped  uint64   `json:"dropped"` // by the interface, that the kernel told of
	Received *uint64  `json:"received"`
	Lost     *uint64  `json:"lost"`
	Loss     *float64 `json:"loss_percent"`
	PPS      float64  `json:"rate_pps"`
	BPS      float64  `json:"rate_bps"`
	BPSL1    float64  `json:"rate_bps_l1"`
	// Behind is how late the schedule was at its end, in seconds: the rate was not reached.
	Behind float64 `json:"behind_seconds"`
	// Transmit is how frames left at the end: "xdp" or "socket". Why not as live frames, though
	// they were wanted, is beside it.
	Transmit string            `json:"transmit"`
	Because  string            `json:"transmit_because,omitempty"`
	Faults   map[string]uint64 `json:"faults,omitempty"`
	// Datagrams is how many frames were sent in others, where some went in segments.
	Datagrams uint64 `json:"datagrams,omitempty"`

	attachReport // with connections, whose answers are taken

	Connection *connReport   `json:"connection,omitempty"`
	Replay     *replayReport `json:"replay,omitempty"`
}

// pktgen sends and reports.
func (a *app) pktgen(ctx context.Context, f *pktgenFlags) error {
	port, err := a.openSender(ctx, &f.port, f.plan.To)
	if err != nil {
		return advise(err, f.port.Interface)
	}
	defer port.Close()
	route := port.Route
	route.Run = uint8(rand.Uint32()) // another one each time, whatever the seed
	port.Route = route
	flows, err := f.plan.Make(route)
	if err != nil {
		return usageError{err}
	}
	if len(flows) < len(port.Links) {
		return usagef("--queues %d: there are %d flows, and each queue sends one at the least",
			len(port.Links), len(flows))
	}
	schedules := make([]*gen.Schedule, len(port.Links))
	for i := range schedules {
		if schedules[i], err = f.plan.Schedule(len(schedules)); err != nil {
			return usageError{err}
		}
	}
	s := &traffic.Sender{
		Link: port.Link, Flows: flows, Count: f.plan.Count, Batch: f.batchOf(port),
		Clock: traffic.NewSystem(f.busy),
		Rows: traffic.Rows{
			Interval: clock.Time(f.interval * float64(time.Second)),
			Row:      func(r traffic.Row) { a.trafficRow(r, false) },
		},
	}
	a.trafficHeader(f.interval, false)
	sent, err := s.RunShared(ctx, port.Links, schedules)
	if err != nil {
		return err
	}
	// Who interrupts is told at once what was sent; the sink is told without waiting for it.
	of, ok, err := port.Confirm(ctx, s)
	if err != nil {
		return err
	}
	r := newPktgenReport(port, f, flows, sent)
	if sent.Whole != sent.Frames {
		r.Datagrams = sent.Whole
	}
	if ok {
		r.confirm(of.Received, s.Numbered())
	}
	if err := a.printPktgen(&r); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	return f.maxLoss.judge(r.Loss)
}

// errNoReport means that nobody told what came.
var errNoReport = errors.New("--max-loss: no sink told how many frames came")

func newPktgenReport(port *traffic.SendPort, f *pktgenFlags, flows []*gen.Flow, sent traffic.Sent,
) pktgenReport {
	way, cause := port.Way()
	r := pktgenReport{
		Device: port.Name, To: f.plan.To, Flows: len(flows), Seed: f.plan.Seed, Sent: sent.Frames,
		Bytes: sent.Bytes, Dropped: sent.Dropped, Seconds: seconds(sent.Duration),
		Behind: seconds(sent.Late), Transmit: way.String(),
	}
	if cause != nil {
		r.Because = cause.Error()
	}
	if r.Seconds > 0 {
		r.PPS = float64(r.Sent) / r.Seconds
		r.BPS = 8 * float64(r.Bytes) / r.Seconds
		r.BPSL1 = layer1(r.Sent, r.Bytes) / r.Seconds
	}
	for name, n := range traffic.Faults(flows) {
		if r.Faults == nil {
			r.Faults = map[string]uint64{}
		}
		r.Faults[name] = n
	}
	return r
}

// confirm notes how many frames came, of so many that flows had: with those that are missing
// on purpose, and without repetitions.
func (r *pktgenReport) confirm(received, of uint64) {
	lost := of - min(received, of)
	r.Received, r.Lost = &received, &lost
	if of > 0 {
		loss := 100 * float64(lost) / float64(of)
		r.Loss = &loss
	}
}

// printPktgen prints the totals.
func (a *app) printPktgen(r *pktgenReport) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printRates(r)
	if r.Received == nil {
		a.printf("no sink told how many came\n")
	} else if r.Loss == nil {
		a.printf("a sink can count none of these: they have no payload for a signature\n")
	} else {
		a.printf("the sink received %d, lost %d (%.4f %%)\n", *r.Received, *r.Lost, *r.Loss)
	}
	a.printFaults(r)
	return nil
}

// printRates prints what was sent and how fast.
func (a *app) printRates(r *pktgenReport) {
	a.printf("%s to %s: %d frames, %d bytes in %.3f s by %s\n  %s, %s, %s on the wire\n",
		r.Device, r.To, r.Sent, r.Bytes, r.Seconds, r.Transmit, metric(r.PPS, "pps"),
		metric(r.BPS, "bit/s"), metric(r.BPSL1, "bit/s"))
	if r.Datagrams > 0 {
		a.printf("  of %d datagrams, in segments\n", r.Datagrams)
	}
	if r.Dropped > 0 {
		a.printf("dropped by the interface: %d\n", r.Dropped)
	}
	if r.Behind > 0 {
		a.printf("the rate was not reached: it ended %.3f s behind its schedule\n", r.Behind)
	}
}

// printFaults prints the mistakes on purpose.
func (a *app) printFaults(r *pktgenReport) {
	for _, name := range traffic.FaultNames() {
		if n := r.Faults[name]; n > 0 {
			a.printf("fault %s: %d\n", name, n)
		}
	}
}

// seconds is a time in seconds.
func seconds(t clock.Time) float64 { return float64(t) / float64(clock.Second) }

// metric prints a number with a decimal unit.
func metric(v float64, unit string) string {
	prefix := ""
	for _, p := range []string{"k", "M", "G"} {
		if v < 1000 {
			break
		}
		v, prefix = v/1000, p
	}
	return fmt.Sprintf("%.4g %s%s", v, prefix, unit)
}
