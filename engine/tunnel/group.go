package tunnel

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// Over UD, what is for all can go to a multicast group once instead of to each peer. Each end has
// a queue pair in the group beside the one for what is for it alone, because all members of a
// group have one Q_Key. That is no secret, so what comes is taken by the address of its sender
// alone: from peers that were found, all of which have the same group and segment.

// groupQKey is the Q_Key of a group, with the segment in the lower half: another segment in the
// same group is not heard. The upper half is that of groups of IPoIB in Linux.
const groupQKey = 0x0b1b << 16

// A group is that of a tunnel, as a peer to whom everything for all goes.
type group struct {
	peer
	gid wire.GID

	mu   sync.Mutex
	made groupWay // what the ways are made of
}

// A groupWay is how all peers are reached at once.
type groupWay struct {
	path    wire.Path
	mtu     int // the smallest of all insides
	largest int // what all peers take
	room    int // of a packet
}

// newGroup makes the group of the configuration, nil for none.
func (t *Tunnel) newGroup() *group {
	a := t.config.Group
	if !a.IsValid() {
		return nil
	}
	g := &group{gid: wire.GIDFromAddr(a)}
	g.addr, g.ways = a, newWays(len(t.inside.Queues))
	return g
}

// checkGroup says what is wrong with a group.
func (c *Config) checkGroup(kind InsideKind) error {
	if !c.Group.IsValid() {
		return nil
	}
	c.Group = c.Group.Unmap()
	others := func(a netip.Addr) bool { return a.Is4() != c.Group.Is4() }
	switch {
	case !c.Group.IsMulticast() || c.Group.Zone() != "":
		return fmt.Errorf("tunnel: %s is no multicast group", c.Group)
	case c.Over != OverUD:
		return fmt.Errorf("tunnel: nothing goes to a group over %s: use ud", c.Over)
	case kind == TUN:
		return errors.New("tunnel: a TUN has a group for nothing: each packet is for one peer")
	case c.Key != nil:
		return errors.New("tunnel: nothing is encrypted for a group: keys are those of two ends, " +
			"and any member could forge with one of all")
	case slices.ContainsFunc(c.Peers, func(p Peer) bool { return others(p.Addr) }),
		slices.ContainsFunc(c.Learn, func(p netip.Prefix) bool { return others(p.Addr()) }):
		return fmt.Errorf("tunnel: group %s and the peers are not both of IPv4, or of IPv6",
			c.Group)
	}
	return nil
}

// startGroup makes the queue pair that what is for all comes to, and joins the group.
func (r *receiver) startGroup(g *group) (err error) {
	t := r.t
	r.group, err = t.dev.CreateQP(t.pd, engine.QPInit{
		Type: roce.TypeUD, SendCQ: r.cq, RecvCQ: r.cq, MaxSendWR: 1, MaxRecvWR: udReceives,
		MaxInlineRecv: engine.NoInlineRecv, PKeyIndex: t.config.PKeyIndex,
	})
	if err != nil {
		return err
	}
	if err := r.group.Start(groupQKey | uint32(t.config.Segment)); err != nil {
		return err
	}
	for i := range uint64(udReceives) {
		if err := r.post(udReceives + i); err != nil {
			return err
		}
	}
	if err := r.group.AttachMulticast(g.gid); err != nil {
		return fmt.Errorf("tunnel: group %s: %w", g.addr, err)
	}
	return nil
}

// refreshGroup makes the ways to the group anew when a peer was found or lost: from the address
// that the first peer knows, and as long as all peers take.
func (t *Tunnel) refreshGroup() {
	g := t.group
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	var next groupWay
	for _, p := range t.roster.Load().peers {
		w := p.ways[0].Load()
		switch {
		case w == nil:
		case next.mtu == 0:
			next = groupWay{path: w.ah.Path(), mtu: w.mtu, largest: w.largest}
		default:
			next.mtu, next.largest = min(next.mtu, w.mtu), min(next.largest, w.largest)
		}
	}
	if next.mtu != 0 {
		next.room = t.template().Room
		next.path.Dst = g.gid
		next.path.DstMAC = g.gid.MulticastMAC(next.path.Framing)
		next.path.FlowLabel, next.path.SrcPort = 0, 0 // not those of the last lookup
	}
	if next == g.made {
		return
	}
	ah, err := (*roce.AH)(nil), error(nil)
	if next.mtu != 0 {
		if ah, err = t.pd.NewAH(next.path); err != nil {
			t.config.Logger.Warn("no way to the group", "group", g.addr.String(), "error",
				err.Error())
			next = groupWay{}
		}
	}
	g.made = next
	for i, l := range t.lanes {
		g.ways[i].Store(t.wayToAll(l, ah, &next))
	}
}

// wayToAll is that of a lane, nil while there is no peer.
func (t *Tunnel) wayToAll(l *lane, ah *roce.AH, of *groupWay) *way {
	if of.mtu == 0 {
		return nil
	}
	w := &way{
		failed: make(chan struct{}, 1), qp: l.qp, template: t.template(), ah: ah,
		qpn: wire.MulticastQP, qkey: groupQKey | uint32(t.config.Segment),
		largest: of.largest, mtu: of.mtu,
	}
	w.template.Room = of.room
	return w
}

// fromGroup is the peer that sent a datagram to the group, nil for none that is taken.
func (r *receiver) fromGroup(path *wire.Path, qpn uint32, p *peer) *peer {
	t := r.t
	g := t.group
	if t.sends(path.Src.Addr(), qpn) { // a group has its own sender in it
		return nil
	}
	g.counts.rxPackets.Add(1)
	switch {
	case p == nil || path.Dst != g.gid:
		g.counts.drop(dropStranger)
	case p.instance.Load() == 0: // it need not be of our segment
		p.counts.drop(dropNoPeer)
	default:
		return p
	}
	return nil
}

// sends reports whether a datagram is one of our own.
func (t *Tunnel) sends(from netip.Addr, qpn uint32) bool {
	return slices.Contains(t.own, from) &&
		slices.ContainsFunc(t.lanes, func(l *lane) bool { return l.qp.QPN() == qpn })
}
