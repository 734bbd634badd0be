package engine

import (
	"context"
	"errors"
	"net/netip"

	"xroce/roce/wire"
)

// ErrNoNeighbour says that nobody answered for an address.
var ErrNoNeighbour = errors.New("engine: no neighbour answers for this address")

// A Host is what a device must know of the machine around its link.
type Host interface {
	// Port says what the interface is and which addresses it has.
	Port() Port
	// Resolve finds the MAC address of the next hop to dst, for packets that
	// leave from src. It asks the network when it has to, within the context.
	Resolve(ctx context.Context, src, dst netip.Addr) (mac [6]byte, err error)
	// Close gives up what the host holds.
	Close() error
}

// A PortWatcher is a Host that notices when its port goes down and comes up.
type PortWatcher interface {
	Host
	// PortStates receives whether the port is up, each time that this changes.
	// Close closes it.
	PortStates() <-chan bool
}

// A Router is a Host that has routes and VLANs and notices when they, its
// addresses or its neighbours change. Its methods are safe for concurrent use.
type Router interface {
	Host
	// Changes receives a value when Port or Lookup may answer something else than
	// before; several changes may be one value. Close closes it.
	Changes() <-chan struct{}
	// ResolveOn is Resolve for packets that leave by the interface of a VLAN, 0
	// for the port itself.
	ResolveOn(ctx context.Context, vlan uint16, src, dst netip.Addr) (Hop, error)
	// Lookup is ResolveOn without waiting. When the neighbour is not known, or
	// what is known of it is old, it has the network asked; the answer is a
	// change. The error is ErrNoNeighbour when the neighbour is not known.
	Lookup(vlan uint16, src, dst netip.Addr) (Hop, error)
	// Source tells from which address, on which VLAN, packets to dst leave. It is
	// an error that they do not leave by the port or a VLAN of it.
	Source(dst netip.Addr) (vlan uint16, src netip.Addr, err error)
}

// A Hop is the first one on the way to a destination.
type Hop struct {
	MAC     [6]byte
	Gateway netip.Addr // zero when the destination is on the link
}

// A Port is the interface that a device runs on.
type Port struct {
	Name  string
	Index int
	MAC   [6]byte
	MTU   int // bytes, without the Ethernet header
	Up    bool
	Addrs []netip.Addr
	VLANs []VLAN // the VLAN interfaces on it, in the order in which they were made
}

// A VLAN is an interface on a port whose frames have an 802.1Q tag.
type VLAN struct {
	ID    uint16 // 1 to 4094
	Name  string
	Index int
	MAC   [6]byte
	Addrs []netip.Addr
}

// orderedGIDs are the GIDs of addresses, those of IPv4 first.
func orderedGIDs(addrs []netip.Addr) []wire.GID {
	var v4, v6 []wire.GID
	for _, a := range addrs {
		if gid := wire.GIDFromAddr(a); a.Is4() || a.Is4In6() {
			v4 = append(v4, gid)
		} else {
			v6 = append(v6, gid)
		}
	}
	return append(v4, v6...)
}
