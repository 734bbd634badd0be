package congestion

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// The work of a sender: so many WRITEs outstanding, of so many bytes each.
const (
	writeSize   = 16 << 10
	outstanding = 32
)

// A host is a device on the network, with one end of a flow or, the receiver, of all.
type host struct {
	index  int
	port   *sim.Port
	device *engine.Device
	pd     *engine.PD
	region *engine.MR
	due    roce.Time // when the device wants a round in any case
	idle   bool      // it does not want any
}

// newHost makes a host and its links.
func newHost(w *world, seed uint64, index int) (*host, error) {
	mac := campaign.MAC(index, 0)
	port, err := w.network.NewPort(sim.PortConfig{
		Name: fmt.Sprintf("host%d", index), MAC: mac, MTU: 1500,
		Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(index + 1)})},
	})
	if err != nil {
		return nil, err
	}
	up := sim.Link{Rate: lineRate, Delay: linkDelay}
	if err := w.network.SetLinks(mac, up, w.scenario.link()); err != nil {
		return nil, err
	}
	h := &host{index: index, port: port}
	h.device, err = engine.OpenLink(port, port, engine.Options{
		Clock: &w.clock, Direct: true, Rand: rand.NewPCG(seed, uint64(index)),
		Congestion: &w.scenario.Config,
	})
	if err != nil {
		return nil, err
	}
	h.pd = h.device.AllocPD()
	h.region, err = h.device.RegMR(h.pd, make([]byte, writeSize), mem.LocalWrite|mem.RemoteWrite)
	return h, err
}

// turn lets the device do all that there is to do.
func (h *host) turn() {
	for h.device.Progress() {
	}
	h.wait()
}

// wait asks the device when it wants the next turn.
func (h *host) wait() {
	at, any := h.device.NextDeadline()
	h.due, h.idle = at, !any
}

// next returns when the host has something to do, false for never.
func (h *host) next() (roce.Time, bool) {
	at, any := h.port.NextArrival()
	if !h.idle && (!any || h.due < at) {
		return h.due, true
	}
	return at, any
}

// end makes a queue pair with a CQ of its own.
func (h *host) end(s *Scenario) (*engine.QP, *engine.CQ, error) {
	cq, err := h.device.CreateCQ(2 * outstanding)
	if err != nil {
		return nil, nil, err
	}
	qp, err := h.device.CreateQP(h.pd, engine.QPInit{
		SendCQ: cq, RecvCQ: cq, MaxSendWR: outstanding, Extensions: s.Extensions,
		ReorderWindow: s.ReorderWindow,
	})
	if err != nil {
		return nil, nil, err
	}
	return qp, cq, qp.Init(mem.LocalWrite | mem.RemoteWrite)
}

// ackTimeout is a local ACK timeout of 2 ms: longer than a full queue takes.
const ackTimeout = 9

// newFlow connects a sender to the receiver.
func newFlow(ctx context.Context, s *Scenario, from, to *host, f Flow) (*flow, error) {
	send, cq, err := from.end(s)
	if err != nil {
		return nil, err
	}
	recv, _, err := to.end(s)
	if err != nil {
		return nil, err
	}
	const gid = 1 // that of the IPv4 address
	local, err := from.device.Endpoint(send, gid)
	if err != nil {
		return nil, err
	}
	remote, err := to.device.Endpoint(recv, gid)
	if err != nil {
		return nil, err
	}
	o := engine.ConnectOptions{SGIDIndex: gid, PathMTU: wire.MTU1024, Timeout: ackTimeout}
	if err := send.Connect(ctx, local, remote, o); err != nil {
		return nil, err
	}
	if err := recv.Connect(ctx, remote, local, o); err != nil {
		return nil, err
	}
	return &flow{Flow: f, host: from, qp: send, cq: cq, to: to.region}, nil
}
