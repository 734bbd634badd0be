package tunnel

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync"
	"sync/atomic"

	"xroce/encap"
	"xroce/encap/bridge"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce/clock"
	rcm "xroce/roce/cm"
	"xroce/roce/wire"
)

// A Tunnel joins an inside with peers.
type Tunnel struct {
	config  Config
	dev     *engine.Device
	manager *cm.Manager
	inside  *Inside
	pd      *engine.PD
	hello   hello
	own     []netip.Addr // that datagrams of tunnels come from
	pathMTU wire.MTU     // of when it was opened, 0 before: over UD lanes send no more at once

	lanes  []*lane
	peers  []*peer // those that are named
	roster atomic.Pointer[roster]
	single *peer // the only one that there can be, nil for several
	in     *receiver

	bridge sync.Mutex // of the tables
	table  *bridge.Table
	routes *bridge.Routes
	hosts  *bridge.Hosts // of a TUN that learns, else nil

	suppression *suppression // nil for none
	learning    *learning
	group       *group // nil for none

	listeners []*cm.Listener
	counts    counts // of what is of no peer

	end     context.CancelCauseFunc // ends Run
	running sync.WaitGroup          // of Run
}

// Open makes a tunnel that waits for its peers; Run moves datagrams. It owns the inside, also
// when it fails.
func Open(
	dev *engine.Device, manager *cm.Manager, inside *Inside, c Config,
) (_ *Tunnel, err error) {
	t := &Tunnel{
		dev: dev, manager: manager, inside: inside, end: func(error) {},
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, t.close())
		}
	}()
	if err := c.complete(inside); err != nil {
		return nil, err
	}
	t.config = c
	if err := t.checkPolled(); err != nil {
		return nil, err
	}
	if most := MaxMTU(dev, inside.Kind, c); inside.MTU > most {
		return nil, fmt.Errorf("tunnel: an MTU of %d, format %s over %s has room for %d here",
			inside.MTU, c.Format, c.Over, most)
	}
	if err := t.decide(); err != nil {
		return nil, err
	}
	t.enlist()
	pkey, err := dev.QueryPKey(int(c.PKeyIndex))
	if err != nil {
		return nil, err
	}
	var instance [8]byte
	rand.Read(instance[:]) // never fails
	t.hello = hello{
		format: c.Format, segment: c.Segment, flags: helloWhole,
		mtu: uint16(inside.MTU), largest: uint32(t.longest()),
		instance: binary.BigEndian.Uint64(instance[:]) | 1, pkey: pkey,
		mac: dev.Port().MAC,
	}
	if c.Key != nil {
		t.hello.flags |= helloSealed
	}
	if t.group != nil {
		t.hello.flags |= helloGroup
		t.hello.group = t.group.gid
	}
	for _, gid := range dev.GIDs() {
		if !gid.IsZero() {
			t.own = append(t.own, gid.Addr())
		}
	}
	t.pd = dev.AllocPD()
	mtu := dev.ActiveMTU()
	if t.in, err = t.newReceiver(); err != nil {
		return nil, err
	}
	for i, q := range inside.Queues {
		l, err := t.newLane(i, q)
		if err != nil {
			return nil, err
		}
		t.lanes = append(t.lanes, l)
	}
	t.pathMTU = min(mtu, dev.ActiveMTU()) // it may have changed meanwhile
	return t, t.listen()
}

// enlist makes the peers that are named.
func (t *Tunnel) enlist() {
	c := &t.config
	ports := make([]*peer, c.mostPeers())
	for i, p := range c.Peers {
		ports[i] = newPeer(p, bridge.Port(i+1), len(t.inside.Queues))
	}
	t.peers = ports[:len(c.Peers):len(c.Peers)]
	if len(ports) == 1 && !c.Group.IsValid() {
		t.single = ports[0] // nil when it is to be learned
	}
	t.roster.Store(newRoster(ports))
	t.learning, t.group = newLearning(c.Learn), t.newGroup()
}

// decide makes what directs datagrams.
func (t *Tunnel) decide() (err error) {
	c := &t.config
	bounds := bridge.Config{
		Size: c.Addresses, Ports: c.mostPeers() + 1, Age: clock.Time(c.Age),
	}
	if t.inside.Kind == TUN {
		if t.routes, err = c.routes(); err == nil && len(c.Learn) > 0 {
			t.hosts, err = bridge.NewHosts(bounds)
		}
		return err
	}
	t.table, err = bridge.New(bounds)
	if err != nil {
		return err
	}
	return t.newSuppression()
}

// MaxMTU is the largest MTU that an inside may have: what the format has room for, with a frame
// of two VLAN tags around it, over a device with its MTU.
func MaxMTU(dev *engine.Device, kind InsideKind, c Config) int {
	t := &Tunnel{config: c, dev: dev, inside: &Inside{Kind: kind}}
	template := t.template()
	return min(kind.within(template.Largest(t.kind())), maxMTU)
}

// longest is the longest datagram that is received, over UD and native with the MTU as it is.
func (t *Tunnel) longest() int {
	spec := t.config.Format.Spec()
	switch t.config.Over {
	case OverRC, OverUC:
		return spec.Connected
	case OverNative:
		template := t.template()
		return template.Largest(t.kind())
	}
	return max(spec.Segmented, t.dev.ActiveMTU().Bytes()-spec.HeaderLen-t.overhead())
}

// template is what the headers to a peer say.
func (t *Tunnel) template() encap.Template {
	spec := t.config.Format.Spec()
	mtu := t.dev.ActiveMTU()
	if t.pathMTU != 0 {
		mtu = min(mtu, t.pathMTU)
	}
	room := mtu.Bytes()
	switch t.config.Over {
	case OverRC, OverUC:
		room = spec.Room + t.overhead()
	case OverNative:
		room = min(t.dev.Port().MTU, t.dev.Link().MaxFrame-inner.EthernetLen)
	}
	return encap.Template{
		Format: t.config.Format, Room: min(room-t.overhead(), spec.Room),
		Switch: t.config.Segment, Own: t.own,
	}
}

// listen waits for peers at all addresses.
func (t *Tunnel) listen() error {
	for _, all := range [...]netip.Addr{netip.IPv4Unspecified(), netip.IPv6Unspecified()} {
		var l *cm.Listener
		var err error
		at := netip.AddrPortFrom(all, t.config.Port)
		switch t.config.Over {
		case OverRC:
			l, err = t.manager.ListenService(all, t.service(), 0)
		case OverUC:
			l, err = t.manager.ListenUC(all, t.service(), 0)
		default:
			l, err = t.manager.ListenDatagram(at, cm.Datagrams{
				QP: t.in.qp, Answer: t.answerLookup,
			})
		}
		if err != nil {
			return err
		}
		t.listeners = append(t.listeners, l)
	}
	return nil
}

// service is where connections are asked for: no port space of rdma_cm, whose private data has no
// room for a key.
func (t *Tunnel) service() rcm.ServiceID { return servicePrefix | rcm.ServiceID(t.config.Port) }

// servicePrefix is "xtun" in the upper half.
const servicePrefix rcm.ServiceID = 0x7874756e << 32

// admit says whether a hello is that of a peer, which is returned, or of one that may be learned:
// that has no port yet.
func (t *Tunnel) admit(from netip.Addr, via rcm.Via, private []byte) (*peer, hello, error) {
	from = from.Unmap().WithZone("")
	p := t.roster.Load().byAddr[from]
	if p == nil && !t.learning.covers(from) {
		t.counts.drop(dropStranger)
		return nil, hello{}, fmt.Errorf("tunnel: %s is no peer", from)
	}
	their, err := parseHello(private)
	if err == nil {
		err = t.hello.agrees(&their)
	}
	switch {
	case err != nil:
	case p == nil:
		p, err = t.candidate(from, via, private)
	case t.config.Key != nil:
		err = t.prove(&p.counts, from, private)
	}
	return p, their, err
}

// countsOf are those of who asks.
func (t *Tunnel) countsOf(p *peer) *counts {
	if p.port == bridge.Inside { // it is none yet
		return &t.counts
	}
	return &p.counts
}

// Run moves datagrams until the context ends, which is no error, or the inside or the device
// fails. Then the tunnel is closed. It is called once.
func (t *Tunnel) Run(ctx context.Context) error {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	t.end = end
	if q := t.polled(); q != nil {
		t.running.Go(func() { t.fail(ctx, t.runLoop(ctx, q)) })
	} else {
		t.running.Go(func() { t.fail(ctx, t.in.run(ctx)) })
		for _, l := range t.lanes {
			t.running.Go(func() { t.fail(ctx, l.run(ctx)) })
		}
	}
	for _, p := range t.peers {
		t.seek(ctx, &t.running, p)
	}
	t.learning.run(ctx)
	if t.config.Over.connected() {
		for _, l := range t.listeners {
			t.running.Go(func() { t.acceptConnections(ctx, l) })
		}
	}
	<-ctx.Done()
	t.learning.end()
	if t.polled() != nil {
		t.running.Wait() // the loop reads a descriptor, which must not become another one
	}
	insideErr := t.inside.Close() // lanes that read return
	t.running.Wait()
	t.inside.Queues = nil
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, insideErr, t.close())
}

// seek looks for a peer until the context ends.
func (t *Tunnel) seek(ctx context.Context, running *sync.WaitGroup, p *peer) {
	if !t.config.Over.connected() {
		running.Go(func() { t.seekDatagrams(ctx, p) })
		return
	}
	for _, l := range t.lanes {
		running.Go(func() { t.seekConnection(ctx, p, l) })
	}
}

// fail ends Run when a part of it ended by itself.
func (t *Tunnel) fail(ctx context.Context, err error) {
	if err != nil && ctx.Err() == nil {
		t.end(err)
	}
}

// close gives back what the tunnel has.
func (t *Tunnel) close() error {
	var errs []error
	for _, l := range t.listeners {
		errs = append(errs, l.Close())
	}
	for _, l := range t.lanes {
		errs = append(errs, l.close())
	}
	if t.in != nil {
		errs = append(errs, t.in.close())
	}
	errs = append(errs, t.inside.Close())
	return errors.Join(errs...)
}

// deliver gives a datagram to the inside: b has inner.VNetLen bytes before it.
func (t *Tunnel) deliver(c *counts, b []byte, v inner.VNet) {
	v.Put(b)
	// An interface that is down refuses everything, and one with a full queue some.
	if _, err := t.inside.Queues[0].Write(b); err != nil {
		c.drop(dropInside)
		if errors.Is(err, os.ErrClosed) {
			t.end(fmt.Errorf("tunnel: interface %s: %w", t.inside.Name, err))
		}
		return
	}
	c.received(len(b) - inner.VNetLen)
}
