package tunnel

import (
	"net/netip"
	"slices"

	"xroce/encap/bridge"
	rcm "xroce/roce/cm"
)

// A roster is who the peers are: those that are named, and those that were learned. It does not
// change: another one takes its place, so that whoever directs datagrams needs no lock.
type roster struct {
	ports  []*peer // by port less 1; nil where nobody is
	peers  []*peer // those that are there
	byAddr map[netip.Addr]*peer
}

// newRoster makes the roster of ports.
func newRoster(ports []*peer) *roster {
	r := &roster{ports: ports, byAddr: map[netip.Addr]*peer{}}
	for _, p := range ports {
		if p != nil {
			r.peers = append(r.peers, p)
			r.byAddr[p.addr.WithZone("")] = p
		}
	}
	return r
}

// with is the roster with another peer at a port, or nobody.
func (r *roster) with(port bridge.Port, p *peer) *roster {
	ports := slices.Clone(r.ports)
	ports[port-1] = p
	return newRoster(ports)
}

// at is the peer of a port, nil for none.
func (r *roster) at(port bridge.Port) *peer {
	if port <= bridge.Inside || int(port) > len(r.ports) {
		return nil
	}
	return r.ports[port-1]
}

// learnedFrom is how many peers were learned from a station.
func (r *roster) learnedFrom(s rcm.Via) (n int) {
	for _, p := range r.peers {
		if p.learned && p.station == s {
			n++
		}
	}
	return n
}

// room is a port where nobody is, 0 for none.
func (r *roster) room() bridge.Port {
	return bridge.Port(slices.Index(r.ports, nil) + 1)
}
