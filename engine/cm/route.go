package cm

import (
	"context"
	"slices"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
)

// Implementation constants of routes.
const (
	maxRoutes    = 1024             // remembered
	maxResolving = 64               // being asked for at once
	maxWaiting   = 256              // MADs for one of them: a burst of requests
	routeLife    = 30 * roce.Second // a neighbour may get another MAC address
	resolveTime  = 3 * time.Second
)

// A route is where MADs that take a path go.
type route struct {
	ah      *roce.AH // nil while it is resolved
	until   roce.Time
	waiting [][cm.MADLen]byte
}

// routes are those that are known or asked for.
type routes struct {
	table     map[cm.Path]*route
	resolving int
}

func (r *routes) init() { r.table = map[cm.Path]*route{} }

// transmit sends what the machine has to send. The caller holds mu.
func (m *Manager) transmit() {
	var mad [cm.MADLen]byte
	for to, ok := m.machine.NextMAD(mad[:]); ok; to, ok = m.machine.NextMAD(mad[:]) {
		m.sendTo(to, &mad)
	}
}

// sendTo sends a MAD, or keeps it until its neighbour is known. The caller holds
// mu.
func (m *Manager) sendTo(to cm.Path, mad *[cm.MADLen]byte) {
	r := m.routes.table[to]
	if r != nil && r.ah != nil && m.clock.Now() >= r.until {
		delete(m.routes.table, to)
		r = nil
	}
	switch {
	case r != nil && r.ah != nil:
		m.post(r.ah, mad)
	case r != nil && len(r.waiting) < maxWaiting:
		r.waiting = append(r.waiting, *mad)
	case r != nil || m.routes.resolving >= maxResolving || m.ended:
		m.lost.Resolving++
	default:
		if len(m.routes.table) >= maxRoutes {
			m.forgetRoutes()
		}
		r = &route{waiting: [][cm.MADLen]byte{*mad}}
		m.routes.table[to] = r
		m.routes.resolving++
		m.running.Go(func() { m.resolve(to, r) })
	}
}

// forgetRoutes forgets those for which no MAD waits. The caller holds mu.
func (m *Manager) forgetRoutes() {
	for path, r := range m.routes.table {
		if r.ah != nil {
			delete(m.routes.table, path)
		}
	}
}

// resolve finds the neighbour on a path and sends what waits for it.
func (m *Manager) resolve(to cm.Path, r *route) {
	ctx, cancel := context.WithTimeout(m.ctx, resolveTime)
	defer cancel()
	av, err := m.vector(to)
	var ah *roce.AH
	if err == nil {
		ah, err = m.dev.CreateAH(ctx, m.pd, av)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.checkLeft()
	m.routes.resolving--
	if err != nil {
		m.lost.NoRoute += uint64(len(r.waiting))
		delete(m.routes.table, to)
		return
	}
	m.know(r, ah)
}

// know completes a route. The caller holds mu.
func (m *Manager) know(r *route, ah *roce.AH) {
	r.ah, r.until = ah, m.clock.Now()+routeLife
	for i := range r.waiting {
		m.post(ah, &r.waiting[i])
	}
	r.waiting = nil
}

// learn adds a route that somebody resolved.
func (m *Manager) learn(ctx context.Context, to cm.Path) error {
	av, err := m.vector(to)
	if err != nil {
		return err
	}
	ah, err := m.dev.CreateAH(ctx, m.pd, av)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.routes.table[to]
	if r == nil {
		if len(m.routes.table) >= maxRoutes {
			m.forgetRoutes()
		}
		r = new(route)
		m.routes.table[to] = r
	}
	m.know(r, ah)
	return nil
}

// vector is a path as the device has it.
func (m *Manager) vector(p cm.Path) (engine.AddressVector, error) {
	index := slices.Index(m.dev.GIDs(), p.Local)
	if index < 0 {
		return engine.AddressVector{}, ErrNoAddress
	}
	return engine.AddressVector{
		DGID: p.Remote, SGIDIndex: index, FlowLabel: p.FlowLabel, TClass: p.TClass,
		HopLimit: p.HopLimit,
	}, nil
}

// post gives a MAD to the device. The caller holds mu.
func (m *Manager) post(ah *roce.AH, mad *[cm.MADLen]byte) {
	err := m.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendInline, Inline: mad[:], AH: ah,
		RemoteQPN: m.qp.QPN(), RemoteQKey: roce.GSIQKey,
	})
	if err != nil {
		m.lost.SendFull++
	}
}

// source draws communication IDs and PSNs, by default from what the device draws
// its own from.
type source struct {
	from roce.Rand
	dev  *engine.Device
}

// Uint64 implements roce.Rand.
func (s *source) Uint64() uint64 {
	if s.from != nil {
		return s.from.Uint64()
	}
	return uint64(s.dev.RandomPSN())<<48 ^ uint64(s.dev.RandomPSN())<<24 ^
		uint64(s.dev.RandomPSN())
}
