package engine

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"xroce/engine/host"
	"xroce/engine/internal/pathtable"
	"xroce/roce"
	"xroce/roce/wire"
)

// An AddressVector says where a connection goes (struct ibv_ah_attr).
type AddressVector struct {
	DGID      wire.GID
	SGIDIndex int    // our GID, by its index in Device.GIDTable: it decides RoCE v1 or v2
	SL        uint8  // service level, 0 to 7: the priority (PCP) of VLAN tags
	FlowLabel uint32 // 20 bits, 0 lets the QP numbers choose the path
	TClass    uint8  // traffic class: DSCP and ECN
	HopLimit  uint8  // TTL of IPv4
}

// ResolvePath turns an address vector into the headers of a path, resolving the
// neighbour: the destination itself, or the router to it by the machine's routes.
// RoCE v1 is not routed. Our own addresses are those of our own MAC address:
// packets to it do not leave the device.
func (d *Device) ResolvePath(ctx context.Context, av AddressVector) (wire.Path, error) {
	return d.pathOf(av, func(to pathtable.Destination) (host.Hop, error) {
		return d.resolve(ctx, to)
	})
}

// KnownPath is ResolvePath without asking the network: nobody is made to do or remember
// anything, so it is the one to use for an address that a stranger names. The error is
// ErrNoNeighbour when the first hop is not known, and when the host is no Router, which
// alone can tell without asking; ErrNoRoute when there is none.
func (d *Device) KnownPath(av AddressVector) (wire.Path, error) {
	return d.pathOf(av, func(to pathtable.Destination) (host.Hop, error) {
		r, ok := d.host.(host.Router)
		if !ok {
			return host.Hop{}, ErrNoNeighbour
		}
		return r.Known(to.VLAN, to.Src.Addr(), to.Dst.Addr())
	})
}

// HasNeighbour reports whether the MAC address of a GID on a VLAN is known, so that KnownPath
// is worth its system call. It costs none.
func (d *Device) HasNeighbour(gid wire.GID, vlan wire.VLAN) bool {
	to := pathtable.Destination{Framing: wire.FramingV2IPv6, VLAN: vlan, Dst: gid}
	if _, ok := d.knownMAC(to); ok {
		return true
	}
	r, ok := d.host.(host.Router)
	return ok && r.HasNeighbour(vlan, gid.Addr())
}

// PathVia is ResolvePath of a first hop that the caller knows, such as the one that a
// datagram came from, by Completion.SrcMAC. Who sent that may have written there what it
// liked: such a path is one for an answer to it, not for a connection.
func (d *Device) PathVia(av AddressVector, hop [6]byte) (wire.Path, error) {
	return d.pathOf(av, func(pathtable.Destination) (host.Hop, error) {
		return host.Hop{MAC: hop}, nil
	})
}

// pathOf turns an address vector into a path, with the first hop that a function finds.
func (d *Device) pathOf(
	av AddressVector, find func(pathtable.Destination) (host.Hop, error),
) (wire.Path, error) {
	from, err := d.gids.At(av.SGIDIndex)
	switch {
	case err != nil:
		return wire.Path{}, err
	case av.DGID.IsZero():
		return wire.Path{}, fmt.Errorf("%w: %s is no GID to connect to", roce.ErrInvalid, av.DGID)
	case av.DGID.IsIPv4() != from.GID.IsIPv4() && !(from.Type == host.GIDRoCEv1 &&
		av.DGID.IsMulticast()):
		return wire.Path{}, fmt.Errorf("%w: from %s to %s: one is IPv4, the other IPv6; "+
			"choose another GID index", roce.ErrInvalid, from.GID, av.DGID)
	case av.SL > 7:
		return wire.Path{}, fmt.Errorf("%w: SL %d is not in 0..7", roce.ErrInvalid, av.SL)
	}
	path := wire.Path{
		Framing: framingOf(from), SrcMAC: from.MAC, Src: from.GID, Dst: av.DGID,
		TClass: av.TClass, HopLimit: av.HopLimit, FlowLabel: av.FlowLabel,
		Tags: from.VLAN.Tags(av.SL),
	}
	to := pathtable.DestinationOf(&path)
	if mac, ok := d.knownMAC(to); ok {
		path.DstMAC = mac
		return path, nil
	}
	hop, err := find(to)
	if err != nil {
		return wire.Path{}, err
	}
	path.DstMAC = hop.MAC
	return path, checkHop(to, hop)
}

// framingOf is that of packets from an address.
func framingOf(e host.GIDEntry) wire.Framing {
	switch {
	case e.Type == host.GIDRoCEv1:
		return wire.FramingV1
	case e.GID.IsIPv4():
		return wire.FramingV2IPv4
	}
	return wire.FramingV2IPv6
}

// resolve asks the host.
func (d *Device) resolve(ctx context.Context, to pathtable.Destination) (hop host.Hop, err error) {
	if r, ok := d.host.(host.Router); ok {
		return r.ResolveOn(ctx, to.VLAN, to.Src.Addr(), to.Dst.Addr())
	}
	hop.MAC, err = d.host.Resolve(ctx, to.Src.Addr(), to.Dst.Addr())
	return hop, err
}

// checkHop refuses a hop that the framing does not allow.
func checkHop(to pathtable.Destination, hop host.Hop) error {
	if to.Framing == wire.FramingV1 && hop.Gateway.IsValid() {
		return fmt.Errorf("%w: %s is behind %s, and RoCE v1 is not routed", roce.ErrInvalid,
			to.Dst, hop.Gateway)
	}
	return nil
}

// knownMAC returns the MAC address that needs no neighbour: of a group, of the
// device itself, and of a default GID, which is made from it (kernel
// drivers/infiniband/core/verbs.c, ib_resolve_unicast_gid_dmac).
func (d *Device) knownMAC(to pathtable.Destination) (mac [6]byte, ok bool) {
	if to.Dst.IsMulticast() {
		return to.Dst.MulticastMAC(to.Framing), true
	}
	if d.gids.Has(to.Dst, to.VLAN) {
		return d.host.Port().MAC, true
	}
	return to.Dst.MAC()
}

// SourceGID chooses the GID from which to reach an address, by its index in
// GIDTable, type RoCE v2: the one that the machine's routes prefer. It is an error
// that packets to it leave by another interface. A passive end asks it for the
// address of the peer, to know that its answers go back the same way. The zone of a
// link-local address is the name or the index of the device's interface, or of a VLAN
// on it; without one it is the first of them that has such an address.
func (d *Device) SourceGID(dst netip.Addr) (index int, err error) {
	to := wire.GIDFromAddr(dst)
	own := func(e host.GIDEntry) bool { return e.GID == to && inZone(e, dst.Zone()) }
	if e, ok := d.gids.Find(host.GIDRoCEv2, own); ok {
		return e.Index, nil
	}
	good := func(e host.GIDEntry) bool {
		return e.GID.IsIPv4() == to.IsIPv4() && e.GID.IsLinkLocal() == to.IsLinkLocal() &&
			inZone(e, dst.Zone())
	}
	if r, ok := d.host.(host.Router); ok && !to.IsLinkLocal() {
		vlan, src, err := r.Source(dst.Unmap())
		if err != nil {
			return 0, err
		}
		good = func(e host.GIDEntry) bool {
			return e.GID == wire.GIDFromAddr(src) && e.VLAN == vlan
		}
	}
	e, ok := d.gids.Find(host.GIDRoCEv2, good)
	if !ok {
		return 0, fmt.Errorf("%w: no GID to reach %s from", roce.ErrInvalid, dst)
	}
	return e.Index, nil
}

// inZone reports whether an entry is of the interface that a zone of RFC 4007 names; no
// zone names all.
func inZone(e host.GIDEntry, zone string) bool {
	return zone == "" || zone == e.Netdev || zone == strconv.Itoa(e.Ifindex)
}
