package inner

import (
	"bytes"
	"encoding/binary"
	"net/netip"
)

// ARP on Ethernet for IPv4 (RFC 826), and neighbour discovery (RFC 4861).
const (
	arpLen     = 28
	arpRequest = 1
	arpReply   = 2

	neighbourSolicitation  = 135
	neighbourAdvertisement = 136
	neighbourLen           = 24 // of both, before options
	optionTarget           = 2
	optionLinkLen          = 8
	neighbourHops          = 255 // nobody farther away could send it so
	flagRouter             = 0x80
	flagSolicited          = 0x40
)

// arpHead is what ARP of Ethernet and IPv4 begins with.
var arpHead = []byte{0, 1, 8, 0, 6, 4}

// AnswerLen is the most bytes that Answer writes.
const AnswerLen = EthernetLen + ipv6Len + neighbourLen + optionLinkLen

// arp returns the packet of ARP in a frame without VLAN tags, nil for none.
func (h *Headers) arp(b []byte) []byte {
	if h.EtherType != TypeARP || h.L3 != EthernetLen || len(b) < EthernetLen+arpLen ||
		!bytes.HasPrefix(b[EthernetLen:], arpHead) {
		return nil
	}
	return b[EthernetLen:][:arpLen]
}

// discovery returns a message of neighbour discovery in a frame without VLAN tags, nil for none.
func (h *Headers) discovery(b []byte, kind byte) []byte {
	if h.Version != 6 || h.L3 != EthernetLen || h.L4 != h.L3+ipv6Len ||
		h.Protocol != ProtocolICMPv6 || h.Fragment || h.End < h.L4+neighbourLen ||
		b[h.L3+7] != neighbourHops {
		return nil
	}
	icmp := b[h.L4:h.End]
	if icmp[0] != kind || icmp[1] != 0 || fold(sum(icmp, h.pseudo(b, len(icmp)))) != 0xffff {
		return nil
	}
	return icmp
}

// Says returns what the sender of a frame says of himself by ARP or a neighbour advertisement:
// which IP address his MAC address has, and whether he is a router. ok is false when it says
// nothing, says it for somebody else, or has VLAN tags.
func (h *Headers) Says(b []byte) (a netip.Addr, mac [6]byte, router, ok bool) {
	if p := h.arp(b); p != nil {
		a = netip.AddrFrom4([4]byte(p[14:]))
		ok = bytes.Equal(p[8:14], b[6:12]) && single(a)
		return a, [6]byte(p[8:]), false, ok
	}
	p := h.discovery(b, neighbourAdvertisement)
	if p == nil {
		return a, mac, false, false
	}
	a = netip.AddrFrom16([16]byte(p[8:]))
	for o := p[neighbourLen:]; len(o) >= optionLinkLen && o[1] > 0; {
		n := int(o[1]) * 8
		if n > len(o) {
			break
		}
		if o[0] == optionTarget && n == optionLinkLen && bytes.Equal(o[2:8], b[6:12]) {
			return a, [6]byte(o[2:]), p[4]&flagRouter != 0, single(a)
		}
		o = o[n:]
	}
	return a, mac, false, false
}

// single reports whether an address can be that of a single host.
func single(a netip.Addr) bool {
	return !a.IsUnspecified() && !a.IsMulticast() && !a.IsLoopback() && !a.Is4In6() &&
		a != netip.AddrFrom4([4]byte{255, 255, 255, 255})
}

// Asks returns whose MAC address a frame to a group asks for. Who asks before it takes an address,
// whether somebody has it, and who says that it has it, is to be heard by all: ok is false then.
func (h *Headers) Asks(b []byte) (target netip.Addr, ok bool) {
	if len(b) < EthernetLen || b[0]&1 == 0 || b[6]&1 != 0 {
		return netip.Addr{}, false
	}
	if p := h.arp(b); p != nil {
		from, target := netip.AddrFrom4([4]byte(p[14:])), netip.AddrFrom4([4]byte(p[24:]))
		return target, binary.BigEndian.Uint16(p[6:]) == arpRequest && single(from) &&
			single(target) && from != target && bytes.Equal(p[8:14], b[6:12])
	}
	p := h.discovery(b, neighbourSolicitation)
	if p == nil {
		return netip.Addr{}, false
	}
	from := netip.AddrFrom16([16]byte(b[h.L3+8:]))
	target = netip.AddrFrom16([16]byte(p[8:]))
	return target, single(from) && single(target) && from != target
}

// Answer writes to dst the answer of whom a frame asks for, if Asks is true of it, and returns its
// length. dst must have AnswerLen bytes.
func (h *Headers) Answer(dst, b []byte, mac [6]byte, router bool) int {
	dst = dst[:AnswerLen]
	copy(dst, b[6:12])
	copy(dst[6:], mac[:])
	copy(dst[12:], b[12:14])
	if h.EtherType == TypeARP {
		p, q := dst[EthernetLen:], b[EthernetLen:]
		copy(p, arpHead)
		binary.BigEndian.PutUint16(p[6:], arpReply)
		copy(p[8:], mac[:])
		copy(p[14:], q[24:28])
		copy(p[18:], q[8:18])
		return EthernetLen + arpLen
	}
	ip, asked := dst[EthernetLen:], b[h.L3:]
	clear(ip)
	ip[0], ip[6], ip[7] = 0x60, ProtocolICMPv6, neighbourHops
	binary.BigEndian.PutUint16(ip[4:], neighbourLen+optionLinkLen)
	icmp := ip[ipv6Len:]
	copy(ip[8:], asked[ipv6Len+8:][:16])
	copy(ip[24:], asked[8:24])
	icmp[0], icmp[4] = neighbourAdvertisement, flagSolicited
	if router {
		icmp[4] |= flagRouter
	}
	copy(icmp[8:], asked[ipv6Len+8:][:16])
	icmp[neighbourLen], icmp[neighbourLen+1] = optionTarget, 1
	copy(icmp[neighbourLen+2:], mac[:])
	pseudo := Headers{Version: 6, Protocol: ProtocolICMPv6}
	check := ^fold(sum(icmp, pseudo.pseudo(ip, len(icmp))))
	binary.BigEndian.PutUint16(icmp[2:], check)
	return len(dst)
}
