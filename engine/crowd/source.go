package crowd

import "net/netip"

// A Source is where somebody says that he comes from. Who sent a frame wrote that there, so it may
// be anybody's invention: names of hosts cost nothing, and neither do those of stations, but a
// router lets through only what comes from its own.
type Source struct {
	Host    netip.Prefix // as of Host
	Station [6]byte      // MAC address of the frame, zeros for none
	// Proven says that the station is the one by which the host is reached.
	Proven bool
}

// A share is a part of all sources which may not have all places: who comes from a host, those who
// are proven apart from those who use its name, who comes by a station, and those who are not
// proven. What is zero does not matter.
type share struct {
	host    netip.Prefix
	station [6]byte
	proof   proof
}

type proof uint8

const (
	_ proof = iota
	proven
	unproven
)

func (s Source) proof() proof {
	if s.Proven {
		return proven
	}
	return unproven
}

// shares are those that a source is in: of its host, of its station, and of who is not proven. It
// is in no share that is zero.
func (s Source) shares() (list [3]share) {
	if s.Host != (netip.Prefix{}) {
		list[0] = share{host: s.Host, proof: s.proof()}
	}
	list[1] = share{station: s.Station}
	if !s.Proven {
		list[2] = share{proof: unproven}
	}
	return list
}

// and is what two shares have in common, which differ in what matters or agree.
func (s share) and(other share) share {
	if other.host != (netip.Prefix{}) {
		s.host = other.host
	}
	if other.station != ([6]byte{}) {
		s.station = other.station
	}
	s.proof = max(s.proof, other.proof)
	return s
}
