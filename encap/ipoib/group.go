package ipoib

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"xroce/roce/wire"
)

// A Scope is how far a group reaches (RFC 4291 section 2.7), 4 bits.
type Scope uint8

// The scopes that there are names for.
const (
	ScopeLinkLocal Scope = 0x2
	ScopeSite      Scope = 0x5
	ScopeGlobal    Scope = 0xe
)

// Signatures of GIDs of groups (RFC 4391 section 4).
const (
	signatureIPv4 = 0x401b
	signatureIPv6 = 0x601b
)

// pkeyFull is the bit of a full member, which is set in the GIDs of groups.
const pkeyFull = 1 << 15

const (
	groupOffSignature = 2
	groupOffPKey      = 4
	groupOffIPv6      = 6 // the lower 80 bits of the address
	groupOffIPv4      = 12
	ipv4GroupMask     = 1<<28 - 1
	broadcastID       = 1<<32 - 1
	// transient is the flag of a multicast address that nobody has assigned for good.
	transient = 1 << 4
)

// BroadcastGID is the group that all interfaces of a partition are in: broadcast of IPv4, and what
// the others take Q_Key and MTU from.
//
//	ff1s:401b:PPPP::ffff:ffff
func BroadcastGID(pkey uint16, s Scope) wire.GID {
	g := groupGID(signatureIPv4, pkey, s)
	binary.BigEndian.PutUint32(g[groupOffIPv4:], broadcastID)
	return g
}

// MulticastGID is the group of an IP multicast address in a partition. Scope 0 is that of the
// address: link-local for IPv4, which tells none. The error wraps ErrFormat when the address is
// none of a group.
//
//	ff1s:401b:PPPP::0GGG:GGGG   IPv4, the lower 28 bits
//	ff1s:601b:PPPP:G...         IPv6, the lower 80 bits
func MulticastGID(group netip.Addr, pkey uint16, s Scope) (wire.GID, error) {
	group = group.Unmap()
	if !group.IsMulticast() {
		return wire.GID{}, fmt.Errorf("%w: %s is no group", ErrFormat, group)
	}
	if group.Is4() {
		if s == 0 {
			s = ScopeLinkLocal
		}
		g := groupGID(signatureIPv4, pkey, s)
		ip := group.As4()
		binary.BigEndian.PutUint32(g[groupOffIPv4:],
			binary.BigEndian.Uint32(ip[:])&ipv4GroupMask)
		return g, nil
	}
	ip := group.As16()
	if s == 0 {
		s = Scope(ip[1] & 0xf)
	}
	g := groupGID(signatureIPv6, pkey, s)
	copy(g[groupOffIPv6:], ip[groupOffIPv6:])
	return g, nil
}

// groupGID is what GIDs of groups begin with.
func groupGID(signature, pkey uint16, s Scope) wire.GID {
	g := wire.GID{0: 0xff, 1: transient | byte(s&0xf)}
	binary.BigEndian.PutUint16(g[groupOffSignature:], signature)
	binary.BigEndian.PutUint16(g[groupOffPKey:], pkey|pkeyFull)
	return g
}

// GroupPKey returns the partition that a GID is a group of, with the bit of a full member, and
// whether it is a group of IPoIB at all.
func GroupPKey(g wire.GID) (pkey uint16, ok bool) {
	signature := binary.BigEndian.Uint16(g[groupOffSignature:])
	if g[0] != 0xff || g[1]&0xf0 != transient ||
		signature != signatureIPv4 && signature != signatureIPv6 {
		return 0, false
	}
	return binary.BigEndian.Uint16(g[groupOffPKey:]), true
}
