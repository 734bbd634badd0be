package transfer

import (
	"net/netip"
	"sync"
)

// Partings are connections that are over and may hear why, each for a second at most. Who lets many
// of them wait for that has to wait himself: hosts that connect again and again, and never hang
// up, keep nobody else waiting. It is safe for concurrent use.
type Partings struct {
	PerSource int // of one host, before it gets no other connection

	mu sync.Mutex
	of map[netip.Prefix]int
}

// Close hangs up on a peer of a host.
func (p *Partings) Close(l *Link, source netip.Prefix) {
	p.begin(source)
	defer p.end(source)
	l.Close()
}

// Many reports whether a host is to have no other connection now.
func (p *Partings) Many(source netip.Prefix) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.of[source] >= p.PerSource
}

func (p *Partings) begin(source netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of == nil {
		p.of = map[netip.Prefix]int{}
	}
	p.of[source]++
}

func (p *Partings) end(source netip.Prefix) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.of[source]--; p.of[source] == 0 {
		delete(p.of, source)
	}
}
