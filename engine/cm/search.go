package cm

import (
	"context"
	"slices"
	"time"

	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// Implementation constants of searches.
const (
	maxSearches = 64  // at once, each with a goroutine
	maxWaiting  = 256 // MADs for one of them: a burst of requests
	searchTime  = 3 * time.Second

	// For requests of strangers so many searches begin at once, and one more each interval.
	// The kernel remembers a neighbour that nobody has for some 20 s, in a table of 1024
	// that all of the machine share (gc_thresh3).
	searchBurst    = 32
	searchInterval = roce.Second / 16
)

// A search asks the network for the first hop to a destination: for MADs of ours, and for
// requests that are shown to the application when it is found.
type search struct {
	path     cm.Path
	mads     []waitingMAD
	requests []*Request
	cancel   context.CancelFunc // nil while it waits for its turn
}

// A waitingMAD is one that leaves when its first hop was found.
type waitingMAD struct {
	to  cm.Path
	mad [cm.MADLen]byte
}

// searches are those for destinations of the manager. What strangers can make it ask for is
// bounded by a budget. It is of the manager's lock.
type searches struct {
	asked   map[destination]*search
	queue   []*search // those that wait for their turn, the oldest first
	running int       // goroutines
	budget  roce.Time // by when the searches that began are paid for
}

// sendWhenFound keeps a MAD until its first hop is known. MADs with no station to answer to
// are of connections that the application wants, so they do not wait for a turn.
func (m *Manager) sendWhenFound(to cm.Path, mad *[cm.MADLen]byte) {
	r, key := &m.routes, destinationOf(&to)
	s := r.asked[key]
	switch {
	case m.ended, s == nil && r.running >= maxSearches, s != nil && len(s.mads) >= maxWaiting:
		m.lost.Resolving++
		return
	case s == nil:
		s = &search{path: to}
		r.asked[key] = s
	}
	s.mads = append(s.mads, waitingMAD{to, *mad})
	if s.cancel == nil {
		r.queue = slices.DeleteFunc(r.queue, func(x *search) bool { return x == s })
		m.begin(s)
	}
}

// showWhenFound keeps a request until the first hop to its peer is known.
func (m *Manager) showWhenFound(r *Request) {
	path := r.event.Params.Path
	path.Via = r.event.Path.Via
	key := destinationOf(&path)
	s := m.routes.asked[key]
	if s == nil {
		s = &search{path: path}
		m.routes.asked[key] = s
		m.routes.queue = append(m.routes.queue, s)
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
	if s.cancel != nil {
		s.cancel()
		return
	}
	m.routes.queue = slices.DeleteFunc(m.routes.queue, func(x *search) bool { return x == s })
}

// nextSearches begins those whose turn it is.
func (m *Manager) nextSearches() {
	r, now := &m.routes, m.clock.Now()
	for len(r.queue) > 0 && r.running < maxSearches && now >= r.turn() && !m.ended {
		r.budget = max(r.budget, now) + searchInterval
		m.begin(r.next())
	}
}

// turn is when the budget allows another search.
func (s *searches) turn() roce.Time { return s.budget - (searchBurst-1)*searchInterval }

// deadline is when nextSearches is to be called, false for never.
func (s *searches) deadline() (roce.Time, bool) {
	return s.turn(), len(s.queue) > 0 && s.running < maxSearches
}

// next takes the search whose turn it is: of those that wait, the oldest one of the station
// that has the fewest.
func (s *searches) next() *search {
	waiting := map[cm.Via]int{}
	for _, x := range s.queue {
		waiting[x.path.Via]++
	}
	first := slices.MinFunc(s.queue, func(a, b *search) int {
		return waiting[a.path.Via] - waiting[b.path.Via]
	})
	s.queue = slices.DeleteFunc(s.queue, func(x *search) bool { return x == first })
	return first
}

// begin begins a search.
func (m *Manager) begin(s *search) {
	ctx, cancel := context.WithTimeout(m.ctx, searchTime)
	s.cancel = cancel
	m.routes.running++
	m.running.Go(func() {
		defer cancel()
		way, err := m.resolve(ctx, s.path)
		m.mu.Lock()
		defer m.mu.Unlock()
		m.routes.running--
		m.found(s, way, err)
		m.nextSearches()
		m.dispatch()
		m.wake()
	})
}

// found ends a search.
func (m *Manager) found(s *search, way wire.Path, err error) {
	key, now := destinationOf(&s.path), m.clock.Now()
	if m.routes.asked[key] == s {
		delete(m.routes.asked, key)
	}
	if err == nil {
		m.routes.learn(key, way.DstMAC, now)
	}
	for i := range s.mads {
		if err != nil {
			m.lost.NoRoute++
		} else {
			m.post(&s.mads[i].to, way.DstMAC, &s.mads[i].mad)
		}
	}
	for _, r := range s.requests {
		r.search = nil
		m.show(r, err)
	}
}
