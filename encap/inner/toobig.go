package inner

import "encoding/binary"

// Messages of ICMP and ICMPv6.
const (
	icmpUnreachable  = 3 // RFC 792
	icmpFragNeeded   = 4 // its code, with the MTU (RFC 1191)
	icmp6TooBig      = 2 // RFC 4443 3.2
	icmp6ErrorsBelow = 128
	icmpLen          = 8

	dontFragment = 0x4000

	quote4    = 548  // bytes of the packet in an error: 576 in all (RFC 1812 4.3.2.3)
	quote6    = 1232 // 1280 in all
	errorTTL  = 64
	minIPv6   = 1280 // the least MTU that IPv6 may be told
	maxTooBig = EthernetLen + maxTags*tagLen + minIPv6
)

// TooBigLen is the most bytes that TooBig writes.
const TooBigLen = maxTooBig

// TooBig writes to dst the error that tells the sender of an IP packet that it is longer than
// mtu bytes, as a frame or a packet like the one it is about, and returns its length: 0 when there
// is to be none, because the packet may be cut, is an error or a fragment itself, or is for a
// group. The error comes from whom the packet was for, as that of other bridged tunnels does
// (kernel net/ipv4/ip_tunnel_core.c, iptunnel_pmtud_build_icmp). dst must have TooBigLen bytes.
func (h *Headers) TooBig(dst, b []byte, mtu int) int {
	if h.Fragment || h.L3 >= EthernetLen && (b[0]|b[6])&1 != 0 {
		return 0
	}
	n := copy(dst, b[:h.L3])
	if h.L3 >= EthernetLen {
		copy(dst, b[6:12])
		copy(dst[6:], b[:6])
	}
	size := 0
	switch h.Version {
	case 4:
		size = h.tooBig4(dst[n:], b[h.L3:h.End], mtu)
	case 6:
		size = h.tooBig6(dst[n:], b[h.L3:h.End], mtu)
	}
	if size == 0 {
		return 0
	}
	return n + size
}

func (h *Headers) tooBig4(dst, ip []byte, mtu int) int {
	header := h.L4 - h.L3
	switch {
	case binary.BigEndian.Uint16(ip[6:])&dontFragment == 0,
		ip[12] >= 224 || ip[12] == 0, ip[16] >= 224,
		ip[9] == ProtocolICMP && (len(ip) <= header || ip[header] != 8 && ip[header] != 0):
		return 0
	}
	quote := min(len(ip), quote4)
	total := ipv4Len + icmpLen + quote
	dst = dst[:total]
	clear(dst[:ipv4Len+icmpLen])
	dst[0], dst[8], dst[9] = 0x45, errorTTL, ProtocolICMP
	binary.BigEndian.PutUint16(dst[2:], uint16(total))
	copy(dst[12:], ip[16:20])
	copy(dst[16:], ip[12:16])
	binary.BigEndian.PutUint16(dst[10:], Checksum(dst[:ipv4Len]))
	icmp := dst[ipv4Len:]
	icmp[0], icmp[1] = icmpUnreachable, icmpFragNeeded
	binary.BigEndian.PutUint16(icmp[6:], uint16(min(mtu, 1<<16-1)))
	copy(icmp[icmpLen:], ip[:quote])
	binary.BigEndian.PutUint16(icmp[2:], Checksum(icmp))
	return total
}

func (h *Headers) tooBig6(dst, ip []byte, mtu int) int {
	switch {
	case ip[8] == 0xff, ip[24] == 0xff,
		h.Protocol == ProtocolICMPv6 &&
			(h.L4 == 0 || h.L4 >= h.End || ip[h.L4-h.L3] < icmp6ErrorsBelow):
		return 0
	}
	quote := min(len(ip), quote6)
	total := ipv6Len + icmpLen + quote
	dst = dst[:total]
	clear(dst[:ipv6Len+icmpLen])
	dst[0], dst[6], dst[7] = 0x60, ProtocolICMPv6, errorTTL
	binary.BigEndian.PutUint16(dst[4:], uint16(icmpLen+quote))
	copy(dst[8:], ip[24:40])
	copy(dst[24:], ip[8:24])
	icmp := dst[ipv6Len:]
	icmp[0] = icmp6TooBig
	binary.BigEndian.PutUint32(icmp[4:], uint32(max(mtu, minIPv6)))
	copy(icmp[icmpLen:], ip[:quote])
	pseudo := Headers{Version: 6, Protocol: ProtocolICMPv6}
	check := ^fold(sum(icmp, pseudo.pseudo(dst, len(icmp))))
	binary.BigEndian.PutUint16(icmp[2:], check)
	return total
}
