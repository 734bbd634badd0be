package host

import (
	"context"
	"errors"
	"net/netip"

	"xroce/roce/wire"
)

// ErrNoNeighbour says that no host answered for an address.
var ErrNoNeighbour = errors.New("host: no neighbour answers for this address")

// ErrNoRoute says that the machine has no route to an address by the interface.
var ErrNoRoute = errors.New("host: no route to this address")

// errClosed says that a host was used after its Close.
var errClosed = errors.New("host: used after Close")

// A Host is what a device must know of the machine around its link.
type Host interface {
	// Port says what the interface is and which addresses it has.
	Port() Port
	// Resolve finds the MAC address of the next hop to dst, for packets that
	// leave from src. It asks the network when it has to, within the context, whose error it
	// returns with ErrNoNeighbour when that ends first.
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

// A RemovalWatcher is a Host that notices that its interface is gone for good.
type RemovalWatcher interface {
	Host
	// Removed is closed when the interface was deleted, or went to another network
	// namespace. Close does not close it.
	Removed() <-chan struct{}
}

// A Namespaced is a Host whose interface is in a network namespace.
type Namespaced interface {
	Host
	// Do runs f on a thread that is in the namespace of the interface, and returns its
	// error. Goroutines that f starts are elsewhere.
	Do(f func() error) error
}

// A Router is a Host that has routes and VLANs and notices when they, its
// addresses or its neighbours change. Its methods are safe for concurrent use.
type Router interface {
	Host
	// Changes receives a value when Port or Lookup may answer something else than
	// before; several changes may be one value. Close closes it.
	Changes() <-chan struct{}
	// ResolveOn is Resolve for packets that leave by the interface of a VLAN, 0
	// for the port itself. What is known of a neighbour and old is an answer, and has the
	// network asked; what comes of that is a change.
	ResolveOn(ctx context.Context, vlan wire.VLAN, src, dst netip.Addr) (Hop, error)
	// Lookup is ResolveOn without waiting. When the neighbour is not known, or
	// what is known of it is old, it has the network asked; the answer is a
	// change. The error is ErrNoNeighbour when the neighbour is not known.
	Lookup(vlan wire.VLAN, src, dst netip.Addr) (Hop, error)
	// Known is Lookup without asking: whoever makes us call it makes the machine do
	// nothing and remember nothing. The error is ErrNoRoute when packets to dst do not
	// leave by the interface.
	Known(vlan wire.VLAN, src, dst netip.Addr) (Hop, error)
	// HasNeighbour reports whether a MAC address is known for addr itself. It is for who
	// has to ask for very many: it answers from a copy, without asking for the route.
	HasNeighbour(vlan wire.VLAN, addr netip.Addr) bool
	// Source tells from which address, on which VLAN, packets to dst leave. It is
	// an error that they do not leave by the port or a VLAN of it.
	Source(dst netip.Addr) (vlan wire.VLAN, src netip.Addr, err error)
}

// A GroupJoiner is a Host that can have the frames of a multicast group sent to
// its interface. One that is none gets them anyway.
type GroupJoiner interface {
	// Join subscribes to a group, until Leave or Close. The device does not join
	// a group twice.
	Join(group netip.Addr) error
	// Leave ends Join.
	Leave(group netip.Addr) error
}

// A MACJoiner is a Host that can have the frames to a multicast MAC address sent to its
// interface, without IGMP or MLD. One that is none gets them anyway.
type MACJoiner interface {
	// JoinMAC opens the filter of the interface to a group's address, until LeaveMAC or
	// Close. Those who join it twice leave it twice.
	JoinMAC(group [6]byte) error
	// LeaveMAC ends JoinMAC.
	LeaveMAC(group [6]byte) error
}

// A Hop is the first one on the way to a destination.
type Hop struct {
	MAC     [6]byte
	Gateway netip.Addr // zero when the destination is on the link
}
