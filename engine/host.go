package engine

import "xroce/engine/host"

// What a device asks of the machine around its link has a package of its own. These
// are the names of it that Open, OpenLink, Device and AddressVector speak of, so that
// a program which opens a device need not import it.
type (
	// A Host is what a device must know of the machine around its link.
	Host = host.Host
	// A PortWatcher is a Host that notices when its port goes down and comes up.
	PortWatcher = host.PortWatcher
	// A RemovalWatcher is a Host that notices that its interface is gone for good.
	RemovalWatcher = host.RemovalWatcher
	// A Router is a Host that has routes and VLANs and notices their changes.
	Router = host.Router
	// A GroupJoiner is a Host that can join multicast groups.
	GroupJoiner = host.GroupJoiner
	// A Hop is the first one on the way to a destination.
	Hop = host.Hop
	// A Port is the interface that a device runs on.
	Port = host.Port
	// A VLAN is an interface on a port whose frames have a VLAN tag, or two.
	VLAN = host.VLAN
	// A GIDEntry is an entry of the GID table (struct ibv_gid_entry).
	GIDEntry = host.GIDEntry
	// GIDType is the type of a GID, with the values of enum ibv_gid_type.
	GIDType = host.GIDType
)

// The types of GID that a RoCE device has, and the length of its GID table, whose
// second half has the addresses of the first one again, of type RoCE v1.
const (
	GIDRoCEv1   = host.GIDRoCEv1
	GIDRoCEv2   = host.GIDRoCEv2
	GIDTableLen = host.GIDTableLen
)

// Errors of a way to an address: no host answered for it, or the machine has no route to
// it by the device's interface.
var (
	ErrNoNeighbour = host.ErrNoNeighbour
	ErrNoRoute     = host.ErrNoRoute
)
