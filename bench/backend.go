package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/bench/load"
	"xroce/bench/stage"
	"xroce/bench/worker"
)

// A backend is a program that can be a worker.
type backend int

// The backends.
const (
	ours      backend = iota // package xsk
	libxdp                   // bench/cpeer, in C
	asavie                   // github.com/asavie/xdp
	sink                     // an XDP program that counts and drops
	sockets                  // bench/cpeer/udppeer.c: UDP sockets, in C
	rc                       // package engine: reliable connections
	micro                    // single steps of package wire
	keys                     // changes of memory keys, on a device without a kernel
	pass                     // an XDP program that lets everything pass
	messaging                // package engine/msg: messages and streams
	goTCP                    // package net: TCP
	goUDP                    // UDP of a Go program
	tunnels                  // package engine/tunnel: one end of a tunnel
	iperf3                   // kernel TCP; not a worker
	ucx                      // ucx_perftest over kernel TCP; not a worker

	command  // our command, as people run it; not a worker
	tshark   // not a worker
	capinfos // not a worker
	testpmd  // of DPDK; not a worker
	ram      // a RAM disk, for files; no program

	// Tunnels of others; no workers.
	kernelVXLAN
	kernelGRE
	kernelWireGuard
	openVPN
	tinc
	n2n
	vpnCloud
)

var backendNames = [...]string{
	ours: "ours", libxdp: "libxdp (C)", asavie: "asavie/xdp", sink: "XDP drop",
	sockets: "UDP sockets", rc: "ours", micro: "ours", keys: "ours", pass: "XDP pass",
	messaging: "ours", goTCP: "TCP of Go", goUDP: "UDP of Go", tunnels: "ours",
	iperf3: "iperf3", ucx: "UCX over TCP",
	command: "ours", tshark: "tshark", capinfos: "capinfos", testpmd: "DPDK testpmd",
	ram:         "RAM disk",
	kernelVXLAN: "VXLAN", kernelGRE: "GRE", kernelWireGuard: "WireGuard", openVPN: "OpenVPN",
	tinc: "tinc", n2n: "n2n", vpnCloud: "vpncloud",
}

func (b backend) String() string { return backendNames[b] }

// argv is the command that runs a backend with options.
func (b *bench) argv(which backend, o worker.Options) []string {
	switch which {
	case libxdp:
		return append([]string{b.peers.cpeer}, o.Args()...)
	case sockets:
		return append([]string{b.peers.udppeer}, o.Args()...)
	}
	name := map[backend]string{
		ours: "ours", asavie: "asavie", sink: "sink",
		rc: "rc", micro: "micro", keys: "keys", pass: "pass",
		messaging: "messages", goTCP: "tcp", goUDP: "udp", tunnels: "tunnel",
	}[which]
	return append([]string{b.self, workerCommand, name}, o.Args()...)
}

// A role is one worker of a run.
type role struct {
	side stage.Side
	who  backend
	mode string
}

// play runs the workers of a variant and returns their reports in the same order.
// They become ready from the last to the first and start to work in that order
// too, so that whoever receives is there before whoever sends: name senders
// first. Each of two workers gets the card of the other.
func (p *place) play(ctx context.Context, roles ...role) ([]worker.Report, error) {
	procs := make([]*worker.Process, len(roles))
	cards := make([]string, len(roles))
	for i := len(roles) - 1; i >= 0; i-- {
		r := roles[i]
		var err error
		if procs[i], err = p.Start(ctx, r.side, p.argv(r.who, p.options(r))...); err != nil {
			return nil, err
		}
		defer procs[i].Close()
		if cards[i], err = procs[i].Ready(); err != nil {
			return nil, err
		}
	}
	if err := p.Settle(ctx); err != nil {
		return nil, err
	}
	for i := len(procs) - 1; i >= 0; i-- {
		if err := procs[i].Go(cards[len(cards)-1-i]); err != nil {
			return nil, err
		}
	}
	return p.collect(procs)
}

// collect takes the reports. That an end has lost its peer is often all that one says when the
// other has failed, so what the others say is told, too.
func (p *place) collect(procs []*worker.Process) ([]worker.Report, error) {
	reports := make([]worker.Report, len(procs))
	var gaveUp, failures []error
	for i, proc := range procs {
		var err error
		if reports[i], err = proc.Report(p.warmup + p.window); err != nil {
			failures = append(failures, err)
		} else if why := reports[i].GaveUp; why != "" {
			gaveUp = append(gaveUp, fmt.Errorf("%w: %s", errGaveUp, why))
		}
	}
	if len(gaveUp) > 0 { // and then the others may fail
		return nil, errors.Join(append(gaveUp[:1], failures...)...)
	}
	if len(failures) > 0 {
		return nil, errors.Join(failures...)
	}
	return reports, nil
}

// errGaveUp means that a worker could not go on, through no fault of its own: its
// peer was not scheduled for too long.
var errGaveUp = errors.New("gave up")

// options are what the worker of a role is told.
func (p *place) options(r role) worker.Options {
	o := p.usual(r)
	if p.tune != nil {
		p.tune(r.side, &o)
	}
	return o
}

// usual are the options without what is special to a variant.
func (p *place) usual(r role) worker.Options {
	other := stage.B - r.side
	s := p.c.sockets
	o := worker.Options{
		Mode: r.mode, Size: s.Frame, Batch: s.Batch, SendBuf: s.SendBuf,
		Warmup: p.warmup, Window: p.window,
	}
	switch r.who {
	case sockets, rc, messaging, goTCP, tunnels:
		o.Local, o.Remote = p.Address(r.side).String(), p.Address(other).String()
	}
	if r.who == rc {
		o.Patience = p.patience
	}
	if r.who == sockets {
		o.Port = socketPort
		if o.Size -= headersLen; s.Message > 0 {
			o.Size = s.Message
		}
		return o
	}
	o.Interface = p.Interface(r.side)
	switch r.who {
	case ours, rc, micro, keys, messaging, goTCP, goUDP:
		o.Message = s.Message
	}
	o.Budget, o.RxFrames, o.TxFrames = s.Budget, s.RxFrames, s.TxFrames
	o.Header = load.Header(s.Frame, [6]byte(p.MAC(other)), [6]byte(p.MAC(r.side)),
		p.Address(r.side).As4(), p.Address(other).As4())
	return o
}

const (
	headersLen = 14 + 20 + 8 // Ethernet, IPv4, UDP
	socketPort = 4791
)

// loss is the fraction of sent packets that did not arrive.
func loss(sent, arrived uint64) float64 {
	if sent == 0 || arrived >= sent {
		return 0
	}
	return float64(sent-arrived) / float64(sent)
}

// idle is how much longer than its window a run takes: processes, sockets and
// the silence at its end. For the first guess at the remaining time only.
const idle = 700 * time.Millisecond
