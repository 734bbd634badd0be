package engine

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"xroce/roce"
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

// A Port is the interface that a device runs on.
type Port struct {
	Name  string
	Index int
	MAC   [6]byte
	MTU   int // bytes, without the Ethernet header
	Up    bool
	Addrs []netip.Addr
}

// GIDs lists the GID table that a device on this port has: the link-local one
// first, as on every RoCE device, then those of the IPv4 and the IPv6 addresses,
// in their order.
func (p Port) GIDs() []wire.GID {
	local := wire.LinkLocalGID(p.MAC)
	var v4, v6 []wire.GID
	for _, a := range p.Addrs {
		switch gid := wire.GIDFromAddr(a); {
		case a.Is4() || a.Is4In6():
			v4 = append(v4, gid)
		case a.IsLinkLocalUnicast():
			local = gid
		default:
			v6 = append(v6, gid)
		}
	}
	return append(append([]wire.GID{local}, v4...), v6...)
}

// An AddressVector says where a connection goes (struct ibv_ah_attr).
type AddressVector struct {
	DGID      wire.GID
	SGIDIndex int    // our GID, by its place in Device.GIDs
	FlowLabel uint32 // 20 bits, 0 lets the QP numbers choose the path
	TClass    uint8  // traffic class: DSCP and ECN
	HopLimit  uint8  // TTL of IPv4
}

// ResolvePath turns an address vector into the headers of a path, resolving the
// neighbour. Our own addresses are those of our own MAC address: packets to it do
// not leave the device.
func (d *Device) ResolvePath(ctx context.Context, av AddressVector) (wire.Path, error) {
	gids := d.GIDs()
	switch {
	case av.SGIDIndex < 0 || av.SGIDIndex >= len(gids):
		return wire.Path{}, fmt.Errorf("%w: GID index %d, the table has %d",
			roce.ErrInvalid, av.SGIDIndex, len(gids))
	case av.DGID.IsZero():
		return wire.Path{}, fmt.Errorf("%w: %s is no GID to connect to", roce.ErrInvalid, av.DGID)
	case av.DGID.IsIPv4() != gids[av.SGIDIndex].IsIPv4():
		return wire.Path{}, fmt.Errorf("%w: from %s to %s: one is IPv4, the other IPv6; "+
			"choose another GID index", roce.ErrInvalid, gids[av.SGIDIndex], av.DGID)
	}
	src, own := gids[av.SGIDIndex], d.host.Port().MAC
	mac := own
	switch {
	case av.DGID.IsMulticast():
		mac = av.DGID.MulticastMAC(framingOf(src))
	case !slices.Contains(gids, av.DGID):
		var err error
		mac, err = d.host.Resolve(ctx, src.Addr(), av.DGID.Addr())
		if err != nil {
			return wire.Path{}, err
		}
	}
	return wire.Path{
		Framing: framingOf(src), SrcMAC: own, DstMAC: mac, Src: src, Dst: av.DGID,
		TClass: av.TClass, HopLimit: av.HopLimit, FlowLabel: av.FlowLabel,
	}, nil
}

// framingOf is the framing of packets from a GID.
func framingOf(src wire.GID) wire.Framing {
	if src.IsIPv4() {
		return wire.FramingV2IPv4
	}
	return wire.FramingV2IPv6
}
