package wire

import (
	"encoding/binary"
	"net/netip"
)

// GID is a global identifier: an IPv6 address, or an IPv4 address mapped into
// one (IBA 4.1.1, A17.9.1). The zero GID names nobody.
type GID [16]byte

// GIDFromAddr is the GID of an IP address; a zone is dropped. The zero Addr
// gives the zero GID.
func GIDFromAddr(a netip.Addr) GID {
	if !a.IsValid() {
		return GID{}
	}
	return GID(a.As16())
}

// GIDFromIPv4 is the IPv4-mapped GID of an address in network byte order.
func GIDFromIPv4(a [4]byte) GID {
	return GID{10: 0xff, 11: 0xff, 12: a[0], 13: a[1], 14: a[2], 15: a[3]}
}

// setIPv4 is GIDFromIPv4 in place. A copy of bytes just written one by one would
// have to wait for them.
func (g *GID) setIPv4(a *[4]byte) {
	binary.BigEndian.PutUint64(g[:], 0)
	binary.BigEndian.PutUint32(g[8:], 0xffff)
	binary.BigEndian.PutUint32(g[12:], binary.BigEndian.Uint32(a[:]))
}

// LinkLocalGID is the default GID of a port: fe80::/64 and the modified EUI-64
// of the MAC address (RFC 4291, appendix A).
func LinkLocalGID(mac [6]byte) GID {
	return GID{
		0: 0xfe, 1: 0x80, 8: mac[0] ^ 2, 9: mac[1], 10: mac[2], 11: 0xff, 12: 0xfe,
		13: mac[3], 14: mac[4], 15: mac[5],
	}
}

// MulticastGID is the GID that rdma_cm joins for an IP group: the address itself
// for RoCE v2; for RoCE v1 an IPv4 group a.b.c.d becomes ff0e::ffff:a.b.c.d.
func MulticastGID(group netip.Addr, f Framing) GID {
	g := GIDFromAddr(group)
	if f == FramingV1 && g.IsIPv4() {
		g[0], g[1] = 0xff, 0x0e
	}
	return g
}

// Addr is the IP address that the GID is: IPv4 when it is IPv4-mapped.
func (g GID) Addr() netip.Addr { return netip.AddrFrom16(g).Unmap() }

// IsIPv4 reports whether the GID is an IPv4-mapped address. Such a GID travels in
// IPv4 packets, all others in IPv6.
func (g GID) IsIPv4() bool {
	return g[10] == 0xff && g[11] == 0xff && [10]byte(g[:]) == [10]byte{}
}

// IPv4 is the IPv4 address in network byte order, meaningful when IsIPv4.
func (g GID) IPv4() [4]byte { return [4]byte(g[12:]) }

// IsZero reports whether the GID names nobody.
func (g GID) IsZero() bool { return g == GID{} }

// IsLinkLocal reports whether the GID is a unicast link-local one (fe80::/10).
func (g GID) IsLinkLocal() bool { return g[0] == 0xfe && g[1]&0xc0 == 0x80 }

// IsMulticast reports whether the GID is an IPv6 or IPv4-mapped multicast group.
func (g GID) IsMulticast() bool {
	return g[0] == 0xff || g.IsIPv4() && g[12]&0xf0 == 0xe0
}

// MAC is the MAC address that a link-local GID was made from. ok is false when
// the GID does not contain one, or that of a group, which is nobody's.
func (g GID) MAC() (mac [6]byte, ok bool) {
	if !g.IsLinkLocal() || g[11] != 0xff || g[12] != 0xfe || g[8]&1 != 0 {
		return mac, false
	}
	return [6]byte{g[8] ^ 2, g[9], g[10], g[13], g[14], g[15]}, true
}

// MulticastMAC is the Ethernet address that packets to the group travel to
// (RFC 1112, RFC 2464). RoCE v1 maps IPv4 groups like IPv6 ones. It is
// meaningful when IsMulticast.
func (g GID) MulticastMAC(f Framing) [6]byte {
	if g.IsIPv4() && f != FramingV1 {
		return [6]byte{0x01, 0x00, 0x5e, g[13] & 0x7f, g[14], g[15]}
	}
	return [6]byte{0x33, 0x33, g[12], g[13], g[14], g[15]}
}

// String prints the GID as verbs tools do: ::ffff:192.0.2.1 for a mapped address.
func (g GID) String() string { return netip.AddrFrom16(g).String() }
