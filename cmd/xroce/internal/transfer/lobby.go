package transfer

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
)

// ErrBusy says that a receiver has as many transfers as it wants at a time.
var ErrBusy = errors.New("the server is busy")

// A Lobby is where connections wait until they have said who they are and what they
// want. It has a bounded number of places and is never full: who comes when all are
// taken gets the place of one of the source that has most, so a stranger who opens
// many drives out his own. The transfers that are admitted are bounded as well. It is
// safe for concurrent use.
type Lobby struct {
	Places    int // for connections that wait
	Transfers int // at a time
	PerSource int // transfers of one source at a time, at most Transfers

	mu       sync.Mutex
	waiting  []*Guest // the one that came first is first
	admitted []*Guest
}

// A Guest is a connection in a lobby. Its methods are for one goroutine.
type Guest struct {
	lobby  *Lobby
	conn   net.Conn
	source netip.Prefix
}

// Enter gives a connection a place. Leave must be called.
func (l *Lobby) Enter(conn net.Conn) *Guest {
	g := &Guest{lobby: l, conn: conn, source: sourceOf(conn.RemoteAddr())}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, g)
	if len(l.waiting) > l.Places {
		l.evict()
	}
	return g
}

// evict hangs up on who came first of the source that has most places.
func (l *Lobby) evict() {
	counts := map[netip.Prefix]int{}
	most := 0
	for _, g := range l.waiting {
		counts[g.source]++
		most = max(most, counts[g.source])
	}
	i := slices.IndexFunc(l.waiting, func(g *Guest) bool { return counts[g.source] == most })
	l.waiting[i].conn.Close()
	l.waiting = slices.Delete(l.waiting, i, i+1)
}

// Admit makes a guest one that has a transfer. ErrBusy says that there are enough.
func (g *Guest) Admit() error {
	l := g.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting, g)
	ofSource := 0
	for _, other := range l.admitted {
		if other.source == g.source {
			ofSource++
		}
	}
	switch {
	case i < 0:
		return fmt.Errorf("%w: others came", ErrBusy)
	case len(l.admitted) >= l.Transfers:
		return fmt.Errorf("%w: it has %d transfers, try again later", ErrBusy, l.Transfers)
	case ofSource >= l.PerSource:
		return fmt.Errorf("%w: %s has %d transfers, try again later", ErrBusy, g.source,
			l.PerSource)
	}
	l.waiting = slices.Delete(l.waiting, i, i+1)
	l.admitted = append(l.admitted, g)
	return nil
}

// Admitted reports whether the guest has a transfer.
func (g *Guest) Admitted() bool {
	g.lobby.mu.Lock()
	defer g.lobby.mu.Unlock()
	return slices.Contains(g.lobby.admitted, g)
}

// Leave gives back what the guest has.
func (g *Guest) Leave() {
	l := g.lobby
	l.mu.Lock()
	defer l.mu.Unlock()
	same := func(other *Guest) bool { return other == g }
	l.waiting = slices.DeleteFunc(l.waiting, same)
	l.admitted = slices.DeleteFunc(l.admitted, same)
}

// networkBits is how much of an IPv6 address says whose it is: a host can have all
// addresses of a network.
const networkBits = 64

// sourceOf is who is at an address. Those without an IP address are one.
func sourceOf(addr net.Addr) netip.Prefix {
	tcp, ok := addr.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := tcp.AddrPort().Addr().Unmap().WithZone("")
	bits := ip.BitLen()
	if ip.Is6() {
		bits = networkBits
	}
	source, err := ip.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return source
}
