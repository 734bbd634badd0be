package main

import (
	"context"

	"github.com/spf13/cobra"

	"xroce/cmd/xroce/internal/peer"
	"xroce/cmd/xroce/internal/pingpong"
	"xroce/engine"
	"xroce/engine/oob"
	"xroce/roce"
	"xroce/roce/wire"
)

// pingpongReport is what `xroce pingpong --json` prints.
type pingpongReport struct {
	Type    string       `json:"type"`
	QPs     int          `json:"qps"`
	Device  string       `json:"device"`
	Backend string       `json:"backend"`
	Mode    string       `json:"mode"`  // direct, busy or background
	Local   endpointJSON `json:"local"` // of the first QP
	Remote  endpointJSON `json:"remote"`
	Size    int          `json:"size"`
	MTU     int          `json:"path_mtu"`
	Iters   int          `json:"iterations"`
	Bytes   int64        `json:"bytes"` // both directions
	Seconds float64      `json:"seconds"`
	Mbits   float64      `json:"megabits_per_second"`
	Usec    float64      `json:"microseconds_per_iteration"`
}

// endpointJSON is an endpoint in a report.
type endpointJSON struct {
	QPN uint32 `json:"qpn"`
	PSN uint32 `json:"psn"`
	GID string `json:"gid"`
}

// maxPingpong is the largest message in bytes: it is held twice.
const maxPingpong = 1 << 30

func (a *app) pingpongCommand() *cobra.Command {
	var device deviceFlags
	var mode modeFlag
	var p struct {
		iface, kind                                      string
		port, size, mtu, depth, iters, gid, qps, timeout int
		events, check, odp                               bool
	}
	c := &cobra.Command{
		Use:   "pingpong [flags] [HOST]",
		Short: "Bounce messages with a peer, which may be one of ibv_*_pingpong",
		Long: `Bounce messages and measure the round trip. Without HOST it waits for a client,
with HOST it is the client of the server there. --type says what the messages go
over, and what of rdma-core the other end may be:

  rc   a reliable connection                         ibv_rc_pingpong
  uc   an unreliable connection                      ibv_uc_pingpong
  ud   datagrams                                     ibv_ud_pingpong
  srq  reliable connections that share receives      ibv_srq_pingpong

Start that with -g INDEX of a RoCE v2 GID, and both with the same -s, -m, -n and
-q. What an unreliable message loses is not sent again: then both ends wait, and give
up after 30 to 60 seconds.`,
		Example: `  xroce pingpong -d eth0                        # server
  xroce pingpong -d eth0 192.0.2.1              # client
  ibv_rc_pingpong -d rxe0 -g 1 192.0.2.1        # client on a verbs device
  xroce pingpong -d eth0 -s 65536 -m 4096 -n 10000 192.0.2.1
  xroce pingpong -d eth0 --type srq -q 8 192.0.2.1`,
		Args: cobra.MaximumNArgs(1),
	}
	flags := c.Flags()
	flags.StringVarP(&p.iface, "device", "d", "", "interface (default: the one that fits)")
	flags.StringVar(&p.kind, "type", string(pingpong.RC), "what to bounce over: rc, uc, ud, srq")
	flags.IntVarP(&p.port, "port", "p", oob.Port, "TCP port for the exchange")
	flags.IntVarP(&p.size, "size", "s", 0, "bytes of a message (default 4096, of a datagram 1024)")
	flags.IntVarP(&p.mtu, "mtu", "m", 1024, "path MTU: 256, 512, 1024, 2048 or 4096")
	flags.IntVarP(&p.depth, "rx-depth", "r", 500, "receives posted")
	flags.IntVarP(&p.iters, "iters", "n", 1000, "messages each way")
	flags.IntVarP(&p.qps, "num-qp", "q", 0, "queue pairs, with --type srq (default 16)")
	flags.IntVarP(&p.gid, "gid-index", "g", peer.AutoGID, "our GID; -1 for the one that fits")
	flags.IntVarP(&p.timeout, "qp-timeout", "u", pingpong.AckTimeout, "ACK timeout: 4.096 us * 2^N")
	flags.BoolVarP(&p.events, "events", "e", false, "sleep between completions, not poll")
	flags.BoolVarP(&p.check, "chk", "c", false, "compare every byte; give -c to the peer, too")
	flags.BoolVarP(&p.odp, "odp", "o", false, "page memory on demand, with --type rc and srq")
	device.register(flags)
	mode.register(flags)
	return a.command(c, func(ctx context.Context, args []string) error {
		c := pingpong.Config{
			Kind: pingpong.Kind(p.kind), Size: p.size, RxDepth: p.depth, Iters: p.iters, QPs: p.qps,
			GIDIndex: p.gid, Events: p.events, Check: p.check, ODP: p.odp, Timeout: a.ackTimeout,
		}
		if err := completePingpong(&c, p.mtu, p.timeout, flags.Changed); err != nil {
			return err
		}
		options, err := device.options(a)
		if err != nil {
			return err
		}
		// Polling means that this thread makes the progress.
		driven, err := mode.apply(&options, !p.events && options.Drivers == 1, !p.events)
		if err != nil {
			return err
		}
		link := tcpLink{iface: p.iface, port: p.port}
		if len(args) == 1 {
			link.host = args[0]
		}
		return a.pingpong(ctx, link, options, c, driven)
	})
}

// defaultQPs is that of ibv_srq_pingpong.
const defaultQPs = 16

// completePingpong fills in the defaults that depend on other flags, and refuses
// what is out of range. given reports whether a flag was given, by its long name.
func completePingpong(c *pingpong.Config, mtu, timeout int, given func(flag string) bool) error {
	var ok bool
	if c.MTU, ok = wire.MTUFromBytes(mtu); !ok {
		return usagef("-m %d: there are 256, 512, 1024, 2048 and 4096", mtu)
	}
	if !c.Kind.Valid() {
		return usagef("--type %q: there are %s", c.Kind, words(pingpong.Kinds()))
	}
	if !given("size") {
		c.Size = c.Kind.DefaultSize()
	}
	most := maxPingpong
	if c.QPs == 0 {
		c.QPs = 1
		if c.Kind == pingpong.SRQ {
			c.QPs = defaultQPs
		}
	}
	switch {
	case c.RxDepth < 1 || c.RxDepth > roce.MaxWR:
		return usagef("-r %d is not in 1..%d", c.RxDepth, roce.MaxWR)
	case c.QPs > 1 && c.Kind != pingpong.SRQ:
		return usagef("-q %d: only --type srq has more than one queue pair", c.QPs)
	case c.QPs < 1 || c.QPs > pingpong.MaxQPs:
		return usagef("-q %d is not in 1..%d", c.QPs, pingpong.MaxQPs)
	case c.QPs > c.RxDepth:
		return usagef("-r %d is not enough for -q %d", c.RxDepth, c.QPs)
	case c.ODP && !c.Kind.Pages():
		return usagef("--odp: what comes while a page is absent would be lost with --type %s",
			c.Kind)
	case timeout < 1 || timeout > 31:
		return usagef("-u %d is not in 1..31", timeout)
	case timeout != pingpong.AckTimeout && !c.Kind.Acknowledged():
		return usagef("-u: nothing is acknowledged with --type %s", c.Kind)
	case c.Iters < 1:
		return usagef("-n %d is not above 0", c.Iters)
	case c.GIDIndex < peer.AutoGID:
		return usagef("-g %d is no index", c.GIDIndex)
	}
	if c.Timeout == 0 || given("qp-timeout") { // a test has another default
		c.Timeout = uint8(timeout)
	}
	if c.Kind == pingpong.SRQ {
		most /= c.RxDepth // each receive has a place of its own
	}
	if c.Size < 1 || c.Size > most {
		return usagef("-s %d is not in 1..%d", c.Size, most)
	}
	return nil
}

// checkPingpong completes what depends on the device, and refuses what it cannot do.
func checkPingpong(dev *engine.Device, c *pingpong.Config) error {
	if err := checkGID(dev, c.GIDIndex); err != nil {
		return err
	}
	if c.Kind != pingpong.UD {
		return checkMTU(dev, c.MTU)
	}
	c.MTU = dev.ActiveMTU()
	if c.Size > c.MTU.Bytes() {
		return usagef("-s %d: a datagram on %s has at most %d bytes", c.Size, dev.Name(),
			c.MTU.Bytes())
	}
	return nil
}

// pingpong plays one game and prints it as the examples of rdma-core do.
func (a *app) pingpong(
	ctx context.Context, link tcpLink, o engine.Options, c pingpong.Config, mode string,
) error {
	link.check = func(dev *engine.Device) error { return checkPingpong(dev, &c) }
	conn, dev, err := a.meet(ctx, link, o)
	if err != nil {
		return err
	}
	defer dev.Close()
	defer conn.Close()
	report := pingpongReport{
		Type: string(c.Kind), QPs: c.QPs, Device: dev.Name(), Backend: dev.Link().Backend,
		Mode: mode, Size: c.Size, MTU: c.MTU.Bytes(),
	}
	c.Connected = func(local, remote engine.Endpoint) {
		if report.Local == (endpointJSON{}) {
			report.Local, report.Remote = endpoint(local), endpoint(remote)
		}
		if !a.json {
			a.printEndpoint("local address: ", local)
			a.printEndpoint("remote address:", remote)
		}
	}
	play := pingpong.Serve
	if link.host != "" {
		play = pingpong.Dial
	}
	result, err := play(ctx, dev, conn, c)
	if err != nil {
		return err
	}
	seconds := result.Duration.Seconds()
	report.Bytes, report.Iters, report.Seconds = result.Bytes, result.Iters, seconds
	report.Mbits = float64(result.Bytes) * 8 / 1e6 / seconds
	report.Usec = seconds * 1e6 / float64(result.Iters)
	if a.json {
		return a.printJSON(report)
	}
	a.printf("  progress mode:  %s\n", mode)
	a.printf("%d bytes in %.2f seconds = %.2f Mbit/sec\n", report.Bytes, seconds, report.Mbits)
	a.printf("%d iters in %.2f seconds = %.2f usec/iter\n", report.Iters, seconds, report.Usec)
	return nil
}

func (a *app) printEndpoint(which string, e engine.Endpoint) {
	a.printf("  %s LID 0x%04x, QPN 0x%06x, PSN 0x%06x, GID %s\n", which, 0, e.QPN,
		uint32(e.PSN), e.GID)
}

func endpoint(e engine.Endpoint) endpointJSON {
	return endpointJSON{QPN: e.QPN, PSN: uint32(e.PSN), GID: e.GID.String()}
}
