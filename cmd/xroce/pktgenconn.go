package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/spf13/pflag"

	"xroce/cmd/xroce/internal/traffic"
	"xroce/engine/oob"
	"xroce/engine/oob/perftest"
	"xroce/roce/clock"
	"xroce/roce/gen"
	"xroce/roce/wire"
)

// connFlags say that packets are those of connections, and how these are kept.
type connFlags struct {
	stateful bool
	connect  int // TCP port of the peer, 0 for a queue pair that is known
	qpn      uint32
	window   int
	reads    int
	timeout  time.Duration
	retries  int
}

func (f *connFlags) register(flags *pflag.FlagSet) {
	flags.BoolVar(&f.stateful, "stateful", false,
		"keep RC connections: wait for answers, send again what is lost")
	flags.IntVar(&f.connect, "connect", 0,
		"the same, with a server of perftest that listens at this TCP `port`")
	flags.Lookup("connect").NoOptDefVal = strconv.Itoa(oob.Port)
	flags.Uint32Var(&f.qpn, "qpn", 0,
		"our QP number of --stateful, that of further flows follow (default by chance)")
	flags.IntVar(&f.window, "window", gen.DefaultWindow, "packets under way of a connection")
	flags.IntVar(&f.reads, "reads", 1, "READs and atomics under way of a connection")
	flags.DurationVar(&f.timeout, "ack-timeout", gen.DefaultTimeout,
		"how long a connection waits for an answer")
	flags.IntVar(&f.retries, "retry-count", 7, "how often in a row it may wait in vain")
}

// check refuses what cannot be, and completes what follows from others.
func (f *connFlags) check(flags *pflag.FlagSet, p *traffic.Plan) error {
	if f.connect != 0 {
		f.stateful = true
	}
	if !f.stateful {
		for _, name := range []string{"qpn", "window", "reads", "ack-timeout", "retry-count"} {
			if flags.Changed(name) {
				return usagef("--%s is for --stateful and --connect", name)
			}
		}
		return nil
	}
	switch {
	case f.connect < 0 || f.connect > 65535:
		return usagef("--connect %d is no TCP port", f.connect)
	case f.qpn > 0xffffff:
		return usagef("--qpn %#x has more than 24 bits", f.qpn)
	case f.window < 1 || f.window > gen.MaxWindow:
		return usagef("--window %d is not in 1..%d", f.window, gen.MaxWindow)
	case f.reads < 1 || f.reads > f.window:
		return usagef("--reads %d is not in 1..%d, the window", f.reads, f.window)
	case f.timeout <= 0 || f.timeout > time.Minute:
		return usagef("--ack-timeout %s is not in 0..1m", f.timeout)
	case f.retries < 0 || f.retries > 7:
		return usagef("--retry-count %d is not in 0..7", f.retries)
	case flags.Changed("rfc2544") || flags.Changed("max-loss"):
		return usagef("--rfc2544 and --max-loss are of what a sink counts, not of connections")
	}
	for i := range p.Flows {
		flow := &p.Flows[i]
		if flow.Format != "" {
			return usagef("--format: connections are of RoCE, and in no other headers")
		}
		if flow.Kind == gen.KindUDP.String() && !flags.Changed("kind") {
			flow.Kind = gen.KindRoCE.String()
		}
		if len(flow.RoCE.Opcodes) == 0 {
			flow.RoCE.Opcodes = []string{wire.RCWriteOnly.String()}
		}
	}
	return nil
}

// connReport is what a run of connections adds to `xroce pktgen --json`.
type connReport struct {
	New        uint64  `json:"new"`
	Answered   uint64  `json:"answered"`
	Messages   uint64  `json:"messages"`
	Resent     uint64  `json:"resent"`
	NAKs       uint64  `json:"nak_sequence"`
	Timeouts   uint64  `json:"timeouts"`
	RNRs       uint64  `json:"rnr_naks"`
	Implied    uint64  `json:"implied_naks"`
	Ghosts     uint64  `json:"ghost_answers"`
	CNPs       uint64  `json:"cnps"`
	Damaged    uint64  `json:"damaged_answers"`
	Unanswered int     `json:"connections_unanswered"`
	Median     float64 `json:"latency_median_us"`
	P99        float64 `json:"latency_99_us"`
	Max        float64 `json:"latency_max_us"`
	Error      string  `json:"error,omitempty"`
}

// pktgenStateful sends over connections and reports.
func (a *app) pktgenStateful(ctx context.Context, f *pktgenFlags) (err error) {
	f.port.Answers, f.port.Types = true, answerTypes(&f.plan)
	port, err := a.openSender(ctx, &f.port, f.plan.To)
	if err != nil {
		return advise(err, f.port.Interface)
	}
	defer port.Close()
	if port.Route.Path.Dst.IsZero() {
		return usagef("--to %s: a connection is with a host, by its name or IP address", f.plan.To)
	}
	configs, err := f.plan.Configs(port.Route)
	if err != nil {
		return usageError{err}
	}
	qpn := f.conn.qpn
	if qpn == 0 {
		qpn = 2 + rand.Uint32N(0xffffff-uint32(len(configs))-2)
	}
	for i := range configs {
		if configs[i].RoCE.MTU == 0 { // of a scenario that says nothing
			configs[i].RoCE.MTU = wire.MTU1024
		}
	}
	var part func(perftest.Report) error
	if f.conn.connect != 0 {
		if part, err = a.acquaint(ctx, f, configs, qpn); err != nil {
			return err
		}
	}
	latency := hdrhistogram.New(1, int64(100e9), 3)
	s, err := f.requests(port, configs, qpn, latency)
	if err != nil {
		return usageError{err}
	}
	s.Row = func(r traffic.Row) { a.trafficRow(r, false) }
	a.trafficHeader(f.interval, false)
	got, failed := s.Run(ctx)
	if err := a.printConn(newConnReport(port, f, s, &got, latency, failed)); err != nil {
		return err
	}
	switch cause := context.Cause(ctx); {
	case failed != nil:
		return failed
	case cause != nil:
		return cause
	case got.Open > 0:
		return errUnanswered
	case part == nil:
		return nil
	}
	return part(perfReport(&got))
}

// answerTypes are the EtherTypes of answers beside RoCE v2: who sends RoCE v1 gets that.
func answerTypes(p *traffic.Plan) []uint16 {
	for i := range p.Flows {
		if p.Flows[i].RoCE.V1 {
			return []uint16{wire.EtherTypeV1}
		}
	}
	return nil
}

// perfReport is what the peer is told, in its units: MiB/s, of whole frames, and millions of
// messages a second.
func perfReport(got *traffic.Requested) perftest.Report {
	r := perftest.Report{Iters: got.Messages}
	if s := seconds(got.Duration); s > 0 && got.Messages > 0 {
		r.Size = got.RequesterStats.Bytes / got.Messages
		r.Average = float64(got.RequesterStats.Bytes) / s / (1 << 20)
		r.MsgRate = float64(got.Messages) / s / 1e6
	}
	return r
}

// errUnanswered means that a peer did not answer all until the end.
var errUnanswered = errors.New("the peer did not answer everything in time")

// requests makes the sender.
func (f *pktgenFlags) requests(port *traffic.SendPort, configs []gen.Config, qpn uint32,
	latency *hdrhistogram.Histogram,
) (*traffic.Requests, error) {
	schedule, err := f.plan.Schedule(1)
	if err != nil {
		return nil, err
	}
	s := &traffic.Requests{
		Link: port.Link, Peer: port.Route.Path.Dst, Schedule: schedule, Count: f.plan.Count,
		Batch: f.batchOf(port), Clock: traffic.NewSystem(f.busy),
		Rows: traffic.Rows{Interval: clock.Time(f.interval * float64(time.Second))},
	}
	for i, c := range configs {
		r, err := gen.NewRequester(c, gen.RequesterConfig{
			QPN: (qpn + uint32(i)) & 0xffffff, Window: f.conn.window, Reads: f.conn.reads,
			Timeout: clock.Time(f.conn.timeout), Retries: f.conn.retries, RNR: 7,
			Acked: func(d clock.Time) {
				// It fails for what is out of range alone.
				_ = latency.RecordValue(min(max(int64(d), 1), int64(100e9)))
			},
		})
		if err != nil {
			return nil, err
		}
		s.Conns = append(s.Conns, r)
	}
	return s, nil
}

// exchangeTime bounds each part of the exchange with the peer.
const exchangeTime = 20 * time.Second

// acquaint makes the connections known to a server of perftest. part is to be called at the end.
func (a *app) acquaint(ctx context.Context, f *pktgenFlags, configs []gen.Config, qpn uint32,
) (part func(perftest.Report) error, err error) {
	dialer := net.Dialer{Timeout: dialTime, KeepAliveConfig: keepAlive}
	at := net.JoinHostPort(f.plan.To, strconv.Itoa(f.conn.connect))
	conn, err := dialer.DialContext(ctx, "tcp", at)
	if err != nil {
		return nil, explainDial(err, f.plan.To)
	}
	context.AfterFunc(ctx, func() { conn.Close() })
	fail := func(err error) error {
		conn.Close()
		return fmt.Errorf("the exchange with %s: %w", at, err)
	}
	if err := conn.SetDeadline(time.Now().Add(exchangeTime)); err != nil {
		return nil, fail(err)
	}
	known, err := traffic.Acquaint(conn, configs, qpn)
	if err != nil {
		return nil, fail(err)
	}
	sends := configs[0].RoCE.Opcodes[0].Spec().Is(wire.ClassSend)
	return func(r perftest.Report) error {
		if err := conn.SetDeadline(time.Now().Add(exchangeTime)); err != nil {
			return fail(err)
		}
		if err := known.Part(sends, r); err != nil {
			return fail(err)
		}
		return conn.Close()
	}, nil
}

func newConnReport(port *traffic.SendPort, f *pktgenFlags, s *traffic.Requests,
	got *traffic.Requested, latency *hdrhistogram.Histogram, failed error,
) *pktgenReport {
	flows := make([]*gen.Flow, 0, len(s.Conns))
	for _, c := range s.Conns {
		flows = append(flows, c.Flow())
	}
	r := newPktgenReport(port, f, flows, got.Sent)
	r.attachReport = newAttachReport(port)
	us := func(percent float64) float64 { return float64(latency.ValueAtQuantile(percent)) / 1e3 }
	r.Connection = &connReport{
		New: got.New, Answered: got.Packets, Messages: got.Messages, Resent: got.Resent,
		NAKs: got.NAKs, Timeouts: got.Timeouts, RNRs: got.RNRs, Implied: got.Implied,
		Ghosts: got.Ghosts, CNPs: got.CNPs, Damaged: got.Damaged, Unanswered: got.Open,
		Median: us(50), P99: us(99), Max: us(100),
	}
	if failed != nil {
		r.Connection.Error = failed.Error()
	}
	return &r
}

// printConn prints what came of connections.
func (a *app) printConn(r *pktgenReport) error {
	if a.json {
		return a.printJSON(r)
	}
	a.printRates(r)
	c := r.Connection
	a.printf("answered %d of %d packets, %d messages; sent again %d\n", c.Answered, c.New,
		c.Messages, c.Resent)
	for _, n := range []struct {
		what string
		n    uint64
	}{
		{"NAKs, PSN sequence error", c.NAKs},
		{"timeouts", c.Timeouts},
		{"RNR NAKs", c.RNRs},
		{"responses missing", c.Implied},
		{"answers that fit nothing", c.Ghosts},
		{"congestion notifications", c.CNPs},
		{"damaged packets that came", c.Damaged},
	} {
		if n.n > 0 {
			a.printf("  %-26s %d\n", n.what, n.n)
		}
	}
	if c.Messages > 0 {
		a.printf("latency of messages [us]  50%% %.1f  99%% %.1f  max %.1f\n", c.Median, c.P99,
			c.Max)
	}
	a.printAttach(&r.attachReport)
	a.printFaults(r)
	return nil
}
