package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"xroce/bench/load"
	"xroce/bench/result"
	"xroce/bench/stage"
	"xroce/bench/worker"
	"xroce/xsk/xsktest/timeout"
)

// Tunnels: the same TCP and UDP through ours, those of the kernel and those of others, from an
// interface in each namespace of the pair to that in the other.

// A joint makes an interface load.InsideName at each end of a stage, and joins both. The parting,
// which may be there beside an error, takes them away.
type joint func(context.Context, *place) (parting, error)

// A parting ends a tunnel and has what its ends report, if they do.
type parting func() ([]worker.Report, error)

// insideAddress is the address of a side in a tunnel, of the block for benchmarks (RFC 2544).
func insideAddress(side stage.Side) netip.Addr {
	return netip.AddrFrom4([4]byte{198, 18, 0, 1 + byte(side)})
}

// through is work between the ends of a tunnel.
func (j joint) through(work runFunc) runFunc {
	return func(ctx context.Context, p *place) (m measurement, err error) {
		leave, err := j(ctx, p)
		if leave != nil {
			defer func() {
				reports, failed := leave()
				m.workers = append(m.workers, reports...) // behind those of the work
				err = errors.Join(err, failed)
			}()
		}
		if err != nil {
			return m, err
		}
		for _, side := range []stage.Side{stage.A, stage.B} {
			err := p.Inside(ctx, side, strings.Fields(fmt.Sprintf("ip addr replace %s/24 dev %s",
				insideAddress(side), load.InsideName))...)
			if err != nil {
				return m, err
			}
		}
		if err := awaitInside(ctx, p); err != nil {
			return m, err
		}
		return work.with(inside)(ctx, p)
	}
}

// inside gives a worker the addresses in the tunnel, and no interface to put a program on.
func inside(side stage.Side, o *worker.Options) {
	o.Interface = ""
	o.Local, o.Remote = insideAddress(side).String(), insideAddress(stage.B-side).String()
}

// insideLimit is how long it may take until something comes through.
var insideLimit = timeout.Scaled(10 * time.Second)

// awaitInside waits until both ends hear each other: what is sent to a port where nobody listens
// has an answer.
func awaitInside(ctx context.Context, p *place) error {
	o := worker.Options{Mode: "knock", Message: shortLength, Window: insideLimit}
	inside(stage.A, &o)
	knock, err := p.Start(ctx, stage.A, p.argv(goUDP, o)...)
	if err != nil {
		return err
	}
	defer knock.Close()
	if _, err := knock.Ready(); err != nil {
		return fmt.Errorf("%w: nothing comes through the tunnel: %w", errGaveUp, err)
	}
	return nil
}

// tunnelsOf joins by ours.
func tunnelsOf(mode string, tune func(stage.Side, *worker.Options)) joint {
	return func(ctx context.Context, p *place) (parting, error) {
		var procs [2]*worker.Process
		kill := func() ([]worker.Report, error) {
			for _, proc := range procs {
				if proc != nil {
					proc.Close()
				}
			}
			return nil, nil
		}
		for side := range stage.B + 1 {
			o := p.options(role{side, tunnels, mode})
			if tune != nil {
				tune(side, &o)
			}
			var err error
			if procs[side], err = p.Start(ctx, side, p.argv(tunnels, o)...); err != nil {
				return kill, err
			}
		}
		for _, proc := range procs {
			if _, err := proc.Ready(); err != nil {
				return kill, err
			}
		}
		return func() (reports []worker.Report, err error) {
			defer kill()
			for _, proc := range procs {
				err = errors.Join(err, proc.Go(""))
			}
			for _, proc := range procs {
				r, failed := proc.Report(0)
				reports, err = append(reports, r), errors.Join(err, failed)
			}
			return reports, err
		}, nil
	}
}

// lossy has a share of packets lost in both directions, in a million.
func lossy(ppm int) func(stage.Side, *worker.Options) {
	return func(side stage.Side, o *worker.Options) { o.Seed, o.LossPPM = 1+int(side), ppm }
}

// A tunnelVariant is a way to join both ends.
type tunnelVariant struct {
	name string
	who  backend
	join joint
	xdp  bool // an XDP program is on both ends, as it is with ours
}

// Names by which goals find the variants.
const (
	vxlanXDP  = "VXLAN, XDP"
	tunRC     = "ours, tun over rc"
	lossless  = "ours, tun over rc, 0 % loss"
	lossyName = "ours, tun over rc, 1 % loss"
)

// tunnelVariants are all ways. Of ours, what is measured is what engine/tunnel does with the
// settings of xroce tunnel.
func tunnelVariants() []tunnelVariant {
	return []tunnelVariant{
		{tunRC, tunnels, tunnelsOf("tun-rc", nil), false},
		{"ours, tap over rc", tunnels, tunnelsOf("tap-rc", nil), false},
		{"ours, tap over ud", tunnels, tunnelsOf("tap-ud", nil), false},
		{"ours, tap over native", tunnels, tunnelsOf("tap-native", nil), false},
		{"ours, tap over rc, key", tunnels, tunnelsOf("tap-rc-key", nil), false},
		{"ours, tap over ud, key", tunnels, tunnelsOf("tap-ud-key", nil), false},
		{vxlanXDP, kernelVXLAN, vxlan, true},
		{"VXLAN", kernelVXLAN, vxlan, false},
		{"GRE, XDP", kernelGRE, gretap, true},
		{"WireGuard, XDP", kernelWireGuard, wireGuard, true},
		{"OpenVPN", openVPN, joinOpenVPN, false},
		{"tinc", tinc, joinTinc, false},
		{"n2n", n2n, joinN2N, false},
		{"vpncloud", vpnCloud, nil, false},
	}
}

// tunnelCases measure a stream, datagrams and a round trip in tunnels.
func tunnelCases() []benchCase {
	const piece = 64 << 10
	bulk := tunnelCase("tcp", "goodput of TCP in a tunnel", "bit/s", piece,
		messages(goTCP, "post", "take").times(8*piece))
	for _, v := range []tunnelVariant{
		{lossless, tunnels, tunnelsOf("tun-rc", lossy(0)), false},
		{lossyName, tunnels, tunnelsOf("tun-rc", lossy(10000)), false},
	} {
		bulk.variants = append(bulk.variants, v.variant(messages(goTCP, "post", "take").
			times(8*piece)))
	}
	rate := tunnelCase("udp", fmt.Sprintf("datagrams of %d bytes in a tunnel that arrived",
		shortLength), "datagrams/s", shortLength, messages(goUDP, "post", "take"))
	rtt := tunnelCase("rtt", fmt.Sprintf("half round trip of %d bytes of UDP in a tunnel, asleep "+
		"in between, median", shortLength), "ns", shortLength,
		func(ctx context.Context, p *place) (measurement, error) {
			return p.pingPong(ctx, goUDP, "ping", "echo")
		})
	rtt.lowerIsBetter = true
	return []benchCase{bulk, rate, rtt}
}

// tunnelCase makes a case of a work.
func tunnelCase(name, title, unit string, message int, work runFunc) benchCase {
	c := benchCase{
		name: result.TunnelPrefix + name, title: title, unit: unit, full: true,
		control: vxlanXDP, reference: vxlanXDP,
		stage: stage.Options{MTU: 1500},
	}
	c.sockets.Message = message
	for _, v := range tunnelVariants() {
		c.variants = append(c.variants, v.variant(work))
	}
	return c
}

// variant does a work in a tunnel.
func (t tunnelVariant) variant(work runFunc) variant {
	v := variant{name: t.name, needs: []backend{t.who}}
	if v.run = t.join.through(work); t.xdp {
		v.run = besideXDP(v.run)
	}
	return v
}
