package tunnel

import (
	"net/netip"

	"xroce/encap"
	"xroce/encap/bridge"
)

// A TUN has no addresses of Ethernet: packets go by routes, which say what a named peer has. A peer
// that was learned has what it sends from. Routes go first, and who has an address keeps it while
// it sends, so that a peer takes from nobody what he has.

// routed is the peer that a packet from inside goes to, Drop for none.
func (t *Tunnel) routed(k encap.Kind, packet []byte) bridge.Port {
	to := address(k, packet, true)
	port := t.routes.To(to)
	if port != bridge.Drop || t.hosts == nil {
		return port
	}
	from := address(k, packet, false)
	t.bridge.Lock()
	defer t.bridge.Unlock()
	now := t.dev.Now()
	t.hosts.Learn(now, from, bridge.Inside) // what is inside is at no peer
	return t.hosts.To(now, to)
}

// isFrom reports whether a peer may send packets from an address: by a route of its own, or when
// it was learned and there is no route.
func (t *Tunnel) isFrom(p *peer, a netip.Addr) bool {
	port := t.routes.To(a)
	if port != bridge.Drop || !p.learned || t.hosts == nil {
		return port == p.port
	}
	t.bridge.Lock()
	defer t.bridge.Unlock()
	// Who is forgotten meanwhile leaves nothing behind in the table.
	return !p.gone.Load() && t.hosts.Learn(t.dev.Now(), a, p.port)
}
