package rdmacm

import (
	"net/netip"
	"sync"

	"xroce/engine/crowd"
)

// places are those of a server's clients: MaxPingers, of one host maxOfHost. They are safe for
// concurrent use.
type places struct {
	mu    sync.Mutex
	taken int
	of    map[netip.Prefix]int // by host
}

// maxOfHost leaves half of the places to others: who connects and says nothing has them for as
// long as a peer may be silent.
const maxOfHost = MaxPingers / 2

// take takes a place for somebody at an address, if there is one.
func (p *places) take(addr netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	host := crowd.Host(addr)
	if !p.freeOf(host) {
		return false
	}
	if p.of == nil {
		p.of = map[netip.Prefix]int{}
	}
	p.taken++
	p.of[host]++
	return true
}

// free reports whether there is a place for somebody at an address.
func (p *places) free(addr netip.Addr) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.freeOf(crowd.Host(addr))
}

// freeOf is free for a host. The caller holds mu.
func (p *places) freeOf(host netip.Prefix) bool {
	return p.taken < MaxPingers && p.of[host] < maxOfHost
}

// leave gives it back.
func (p *places) leave(addr netip.Addr) {
	p.mu.Lock()
	defer p.mu.Unlock()
	host := crowd.Host(addr)
	p.taken--
	if p.of[host]--; p.of[host] == 0 {
		delete(p.of, host)
	}
}
