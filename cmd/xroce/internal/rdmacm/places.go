package rdmacm

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"xroce/engine/crowd"
)

// MaxPingers is how many clients ServeRpings has at a time, maxOfAddress of them from one address.
const (
	MaxPingers   = 64
	maxOfAddress = MaxPingers / 2
)

// quiet is after what time without a word a client has its place for nothing.
const quiet = time.Second

// errOthers is why a client is let go that gave way.
var errOthers = errors.New("others came, and it said nothing or is of a host with more places")

// places are those of a server's clients. Who says nothing gives way when all are taken, and so
// does one of a host that has more than who comes. They are safe for concurrent use.
type places struct {
	now func() time.Time // for tests, may be nil

	mu      sync.Mutex
	seats   []*seat // who came first is first
	leaving int     // that gave way, and have not left yet
}

// A seat is a client's place.
type seat struct {
	places *places
	addr   netip.Addr
	last   time.Time // when something came from it
	hangUp context.CancelCauseFunc
}

// take takes a place for somebody at an address, nil if there is none. hangUp is called, and must
// not wait, when it gives way.
func (p *places) take(addr netip.Addr, hangUp context.CancelCauseFunc) *seat {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.placeOf(addr)
	if !ok {
		return nil
	}
	if i >= 0 {
		p.seats[i].hangUp(errOthers)
		p.seats = slices.Delete(p.seats, i, i+1)
		p.leaving++
	}
	s := &seat{places: p, addr: addr, last: p.time(), hangUp: hangUp}
	p.seats = append(p.seats, s)
	return s
}

// free reports whether there is a place for somebody at an address.
func (p *places) free(addr netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ok := p.placeOf(addr)
	return ok
}

// placeOf says whether there is a place for an address, and who gives way for it. Who gave way
// holds memory until it notices, so of those there are no more than places. The caller holds mu.
func (p *places) placeOf(addr netip.Addr) (leaves int, ok bool) {
	now := p.time()
	limits := crowd.Limits{Places: MaxPingers, Each: maxOfAddress}
	leaves, ok = crowd.Place(p.seats, limits, addr, func(s *seat) (netip.Addr, bool) {
		return s.addr, now.Sub(s.last) >= quiet
	})
	return leaves, ok && (leaves < 0 || p.leaving < MaxPingers)
}

func (p *places) time() time.Time {
	if p.now == nil {
		return time.Now()
	}
	return p.now()
}

// heard takes note that something came from the client. The seat may be nil, for a client that
// needs no place.
func (s *seat) heard() {
	if s == nil {
		return
	}
	s.places.mu.Lock()
	defer s.places.mu.Unlock()
	s.last = s.places.time()
}

// leave gives the place back.
func (s *seat) leave() {
	p := s.places
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.seats, s); i >= 0 {
		p.seats = slices.Delete(p.seats, i, i+1)
		return
	}
	p.leaving--
}
