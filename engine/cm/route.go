package cm

import (
	"context"
	"slices"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// Implementation constants of routes.
const (
	maxRoutes = 1024             // remembered
	routeLife = 30 * roce.Second // a neighbour may get another MAC address
	noneLife  = roce.Second      // that there is no route, which costs a look each time
)

// A destination is what the first hop of a path depends on.
type destination struct {
	local, remote wire.GID
	vlan          wire.VLAN
}

func destinationOf(p *cm.Path) destination {
	return destination{p.Local, p.Remote, p.Via.VLAN}
}

// A route is the first hop to a destination, or that none was found.
type route struct {
	mac   [6]byte
	none  bool
	until roce.Time
}

// hops are first hops of routes that are remembered, and to how many destinations they lead. One
// that is part of the address proves nothing, and is none of these.
type hops map[[6]byte]int

// lead reports whether a station leads to somebody.
func (h hops) lead(mac [6]byte) bool { return h[mac] > 0 }

// count counts one more or one less.
func (h hops) count(to destination, r route, n int) {
	if _, told := to.remote.MAC(); told || r.none {
		return
	}
	if h[r.mac] += n; h[r.mac] == 0 {
		delete(h, r.mac)
	}
}

// routes are those that are known, bounded by maxRoutes, and those that are asked for. It
// is of the manager's lock.
type routes struct {
	table map[destination]route
	hops  hops
	searches
}

func (r *routes) init() {
	r.table, r.hops = map[destination]route{}, hops{}
	r.searches.init()
	r.look.hops = r.hops
}

// get returns what is still believed of a destination, and whether there is a route.
func (r *routes) get(to destination, now roce.Time) (route, bool) {
	known, ok := r.table[to]
	if !ok || now >= known.until {
		return route{}, false
	}
	return known, !known.none
}

// learn notes the first hop to a destination. When there are too many any other one is forgotten:
// not all of them, which who asks in many names would have happen again and again, and not the
// oldest, since what he names is always newer.
func (r *routes) learn(to destination, mac [6]byte, now roce.Time) {
	r.remember(to, route{mac: mac, until: now + routeLife})
}

// learnNone notes that no route to a destination was found. One that is still believed stays: the
// search may have been given up, because of who asked.
func (r *routes) learnNone(to destination, now roce.Time) {
	if _, ok := r.get(to, now); !ok {
		r.remember(to, route{none: true, until: now + noneLife})
	}
}

func (r *routes) remember(to destination, what route) {
	if _, known := r.table[to]; !known && len(r.table) >= maxRoutes {
		for other := range r.table {
			r.forget(other)
			break
		}
	}
	r.forget(to)
	r.table[to] = what
	r.hops.count(to, what, 1)
}

// forget forgets what is known of a destination, if anything is.
func (r *routes) forget(to destination) {
	if known, ok := r.table[to]; ok {
		delete(r.table, to)
		r.hops.count(to, known, -1)
	}
}

// transmit sends what the machine has to send, as much as the send queue has room for: a
// completion tells when there is more. Strangers who ask again and again about nothing must not
// fill the send queue, so what they are told gets half of it. The caller holds mu.
func (m *Manager) transmit() {
	r := &m.routes
	if len(r.ready) == 0 && m.machine.Usage().MADs == 0 {
		return
	}
	room := sendWRs - m.qp.Snapshot().SendPosted
	for ; room > 0 && len(r.ready) > 0; r.ready = r.ready[1:] {
		if w := &r.ready[0]; m.post(&w.to, w.hop, &w.mad) {
			room--
		}
	}
	if len(r.ready) == 0 {
		r.ready = nil // also its memory
	}
	var mad [cm.MADLen]byte
	for room > 0 {
		to, ok := m.machine.NextMAD(mad[:])
		if !ok {
			return
		}
		h, _ := cm.ParseHeader(mad[:])
		if room <= sendWRs/2 && m.aboutNothing(h.Attribute, &mad) {
			m.lost.Refusals++
			continue
		}
		if h.Attribute == cm.AttributeREP {
			m.follow(&to, &mad)
		}
		if m.sendTo(to, &mad) {
			room--
		}
	}
}

// aboutNothing reports whether a MAD answers what anybody may send as often as he likes, since
// there is nothing behind it: no listener, no connection. The caller holds mu.
func (m *Manager) aboutNothing(a cm.Attribute, mad *[cm.MADLen]byte) bool {
	switch a {
	case cm.AttributeREJ:
		return true
	case cm.AttributeDREP:
		r, _ := cm.ParseDREP(mad[:])
		return m.machine.State(cm.ID(r.LocalCommID)) == cm.StateGone
	case cm.AttributeSIDRREP:
		r, _ := cm.ParseSIDRREP(mad[:])
		return r.Status != cm.SIDRSuccess
	}
	return false
}

// follow has a REP go where the packets of its queue pair go by now. The device follows a host or
// router that gets another MAC address; the machine only knows the station that was found when the
// request came, to which it would repeat the REP until the peer gives up. The caller holds mu.
func (m *Manager) follow(to *cm.Path, mad *[cm.MADLen]byte) {
	rep, _ := cm.ParseREP(mad[:])
	c := m.conns[cm.ID(rep.LocalCommID)]
	if c == nil {
		return
	}
	if path := c.qp.Query().Path; path.Dst == to.Remote {
		to.Via.MAC = path.DstMAC
	}
}

// sendTo sends a MAD: an answer to where the question came from, for which nobody is asked,
// another MAD to its first hop, which it has to wait for if that is not known. It reports
// whether the device has it. The caller holds mu.
func (m *Manager) sendTo(to cm.Path, mad *[cm.MADLen]byte) bool {
	if to.Via.MAC != [6]byte{} {
		return m.post(&to, to.Via.MAC, mad)
	}
	if r, ok := m.routes.get(destinationOf(&to), m.clock.Now()); ok {
		return m.post(&to, r.mac, mad)
	}
	m.sendWhenFound(to, mad)
	return false
}

// post gives a MAD to the device, and reports whether that takes it. The caller holds mu.
func (m *Manager) post(to *cm.Path, hop [6]byte, mad *[cm.MADLen]byte) bool {
	path, err := m.pathVia(to, hop)
	var ah *roce.AH
	if err == nil {
		ah, err = m.pd.NewAH(path)
	}
	if err != nil {
		m.lost.NoRoute++ // the address was ours and is no more
		return false
	}
	wr := roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline, Inline: mad[:], AH: ah,
		RemoteQPN: m.qp.QPN(), RemoteQKey: roce.GSIQKey, PKeyIndex: to.PKeyIndex,
	}
	if m.posted%sendSignal == 0 {
		wr.Flags |= roce.SendSignaled
	}
	if err := m.qp.PostSend(&wr); err != nil {
		m.lost.SendFull++
		return false
	}
	m.posted++
	return true
}

// pathVia is a path as packets have it, by a first hop.
func (m *Manager) pathVia(p *cm.Path, hop [6]byte) (wire.Path, error) {
	av, err := m.vector(p)
	if err != nil {
		return wire.Path{}, err
	}
	return m.dev.PathVia(av, hop)
}

// learn resolves a path for who waits for it.
func (m *Manager) learn(ctx context.Context, to cm.Path) error {
	way, err := m.resolve(ctx, &to)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.routes.learn(destinationOf(&to), way.DstMAC, m.clock.Now())
	return nil
}

// resolve turns a path into that of packets, and asks the network if need be.
func (m *Manager) resolve(ctx context.Context, to *cm.Path) (wire.Path, error) {
	av, err := m.vector(to)
	if err != nil {
		return wire.Path{}, err
	}
	return m.dev.ResolvePath(ctx, av)
}

// vector is a path as the device has it. One that came by a VLAN is from our address there,
// another one from the first address with its GID.
func (m *Manager) vector(p *cm.Path) (engine.AddressVector, error) {
	av := engine.AddressVector{
		DGID: p.Remote, FlowLabel: p.FlowLabel, SL: p.SL, TClass: p.TClass,
		HopLimit: p.HopLimit,
	}
	if p.Via != (cm.Via{}) {
		e, ok := m.dev.FindGID(p.Local, p.Via.VLAN)
		if !ok {
			return av, ErrNoAddress
		}
		av.SGIDIndex = e.Index
		return av, nil
	}
	av.SGIDIndex = slices.Index(m.dev.GIDs(), p.Local)
	if av.SGIDIndex < 0 {
		return av, ErrNoAddress
	}
	return av, nil
}
