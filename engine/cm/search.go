package cm

import (
	"context"
	"errors"
	"slices"
	"time"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// Implementation constants of searches.
const (
	maxSearches = 64   // at once, each with a goroutine
	maxOwn      = 4096 // of connections of ours, which wait for one of these to end
	maxWaiting  = 256  // MADs for one of them, and one of each connection
	searchTime  = 3 * time.Second

	// So many of them for strangers, who would else leave none for connections of ours.
	maxForStrangers = 48

	// For requests of strangers so many routes are looked up at once, and one more each
	// interval, which keeps a processor busy for 2 % of the time.
	lookBurst    = 256
	lookInterval = roce.Second / 1024

	// The same of searches. The kernel remembers a neighbour that nobody has for some 20 s,
	// in a table of 1024 that all of the machine share (gc_thresh3).
	searchBurst    = 32
	searchInterval = roce.Second / 16
)

// A search is for the first hop to a destination: for MADs of ours, and for requests that are
// shown to the application when it is found. It looks at what the machine knows, then asks
// the network.
type search struct {
	path     cm.Path
	mads     []waitingMAD
	requests []*Request
	line     *line              // in which it waits for its turn
	cancel   context.CancelFunc // while the network is asked
}

// A waitingMAD is one that leaves when its first hop was found, and the send queue has room.
type waitingMAD struct {
	to  cm.Path
	hop [6]byte // once found
	mad [cm.MADLen]byte
}

// searches are those for destinations of the manager. What strangers can make it look up and
// ask for is bounded by the lines. It is of the manager's lock.
type searches struct {
	asked     map[destination]*search
	own       line // for connections of ours, which wait for a goroutine alone
	look, ask line
	running   int          // goroutines
	ready     []waitingMAD // whose first hop was found
}

func (s *searches) init() {
	s.asked = map[destination]*search{}
	s.own = line{burst: 1}
	s.look = line{burst: lookBurst, interval: lookInterval}
	s.ask = line{burst: searchBurst, interval: searchInterval}
}

// sendWhenFound keeps a MAD until its first hop is known. MADs with no station to answer to
// are of connections that the application wants, so they go before what strangers ask for.
func (m *Manager) sendWhenFound(to cm.Path, mad *[cm.MADLen]byte) {
	r, key := &m.routes, destinationOf(&to)
	s := r.asked[key]
	first := s == nil || len(s.mads) == 0
	switch {
	case m.ended, first && len(r.own.waiting) >= maxOwn,
		!first && len(s.mads) >= maxWaiting+m.machine.Usage().Connections:
		m.lost.Resolving++
		return
	case s == nil:
		s = &search{path: to}
		r.asked[key] = s
	}
	s.mads = append(s.mads, waitingMAD{to: to, mad: *mad})
	if first && s.cancel == nil {
		s.leave()
		r.own.join(s)
		m.beginOwn()
	}
}

// beginOwn begins the searches for connections of ours.
func (m *Manager) beginOwn() {
	r, now := &m.routes, m.clock.Now()
	for !m.ended && r.own.ready(now) && r.running < maxSearches {
		m.begin(r.own.next(now))
	}
}

// showWhenFound keeps a request until the first hop to its peer is known.
func (m *Manager) showWhenFound(r *Request) {
	path := r.path()
	key := destinationOf(&path)
	s := m.routes.asked[key]
	if s == nil {
		s = &search{path: path}
		m.routes.asked[key] = s
		m.routes.look.join(s)
	}
	r.search = s
	s.requests = append(s.requests, r)
	m.nextSearches()
}

// giveUp ends a search for a request that is gone, unless somebody else wants to know.
func (m *Manager) giveUp(r *Request) {
	s := r.search
	if s == nil {
		return
	}
	r.search = nil
	s.requests = slices.DeleteFunc(s.requests, func(x *Request) bool { return x == r })
	if len(s.requests) > 0 || len(s.mads) > 0 {
		return
	}
	delete(m.routes.asked, destinationOf(&s.path))
	s.leave()
	if s.cancel != nil {
		s.cancel()
	}
}

// nextSearches goes on with those whose turn it is.
func (m *Manager) nextSearches() {
	m.beginOwn()
	r, now := &m.routes, m.clock.Now()
	for !m.ended && r.look.ready(now) {
		m.look(r.look.next(now))
	}
	for !m.ended && r.ask.ready(now) && r.running < maxForStrangers {
		m.begin(r.ask.next(now))
	}
}

// deadline is when nextSearches is to be called, false for never.
func (s *searches) deadline() (at roce.Time, ok bool) {
	if len(s.look.waiting) > 0 {
		at, ok = s.look.turn(), true
	}
	if turn := s.ask.turn(); len(s.ask.waiting) > 0 && s.running < maxForStrangers {
		if !ok || turn < at {
			at, ok = turn, true
		}
	}
	return at, ok
}

// look ends a search with what the machine knows, or has it wait until the network is asked.
func (m *Manager) look(s *search) {
	av, err := m.vector(&s.path)
	var way wire.Path
	if err == nil {
		way, err = m.dev.KnownPath(av)
	}
	if !errors.Is(err, engine.ErrNoNeighbour) {
		m.found(s, way, err)
		return
	}
	key := destinationOf(&s.path)
	if other := m.routes.asked[key]; other != nil && other != s {
		other.requests = append(other.requests, s.requests...)
		s = other
	} else if s.cancel == nil {
		m.routes.asked[key] = s
		m.routes.ask.join(s)
	}
	for _, r := range s.requests {
		r.search = s
	}
}

// begin begins a search.
func (m *Manager) begin(s *search) {
	ctx, cancel := context.WithTimeout(m.ctx, searchTime)
	s.cancel = cancel
	m.routes.running++
	m.running.Go(func() {
		defer cancel()
		way, err := m.resolve(ctx, &s.path)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.routes.running--
		m.found(s, way, err)
		m.nextSearches()
		m.dispatch()
		m.wake()
	})
}

// found ends a search. What waited for it leaves with the next dispatch.
func (m *Manager) found(s *search, way wire.Path, err error) {
	key, now := destinationOf(&s.path), m.clock.Now()
	if m.routes.asked[key] == s {
		delete(m.routes.asked, key)
	}
	if err == nil {
		m.routes.learn(key, way.DstMAC, now)
		for i := range s.mads {
			s.mads[i].hop = way.DstMAC
		}
		m.routes.ready = append(m.routes.ready, s.mads...)
	} else {
		if m.dev.HasNeighbour(s.path.Remote, s.path.Via.VLAN) { // others wait for their turn
			m.routes.learnNone(key, now)
		}
		m.lost.NoRoute += uint64(len(s.mads))
	}
	for _, r := range s.requests {
		r.search = nil
		own, failed := way, err
		if path := r.path(); err == nil && path != s.path {
			// Of the same peer, but with another traffic class or so.
			own, failed = m.pathVia(&path, way.DstMAC)
		}
		m.show(r, own, failed)
	}
}
