package inner

import (
	"encoding/binary"

	"xroce/encap"
)

// EtherTypes and protocols that are looked at.
const (
	TypeIPv4 = 0x0800
	TypeARP  = 0x0806
	TypeVLAN = 0x8100
	TypeIPv6 = 0x86DD
	TypeQinQ = 0x88A8

	ProtocolICMP   = 1
	ProtocolTCP    = 6
	ProtocolUDP    = 17
	ProtocolICMPv6 = 58
)

// Lengths in bytes.
const (
	EthernetLen = 14
	tagLen      = 4
	ipv4Len     = 20
	ipv6Len     = 40
	tcpLen      = 20
	udpLen      = 8

	maxTags       = 2
	maxExtensions = 8 // IPv6 extension headers that are looked through
)

// Headers says where the headers of a datagram lie. Offsets are from its beginning.
type Headers struct {
	EtherType uint16 // behind VLAN tags; of IP packets, too
	L3        int    // the IP header, or what is behind that of Ethernet
	Version   int    // 4 or 6, 0 for what is not IP, or is broken
	End       int    // of the IP packet, before any padding of Ethernet
	Protocol  uint8  // the transport, or the extension header that was not understood
	L4        int    // the transport header, 0 when there is none to be seen
	Fragment  bool   // a part of a packet; only the first one has L4
}

// Parse finds the headers. Of a frame that holds no IP only EtherType and L3 are set.
func Parse(k encap.Kind, b []byte) (h Headers) {
	switch k {
	case encap.Ethernet:
		if len(b) < EthernetLen {
			return Headers{}
		}
		at := EthernetLen - 2
		h.EtherType = binary.BigEndian.Uint16(b[at:])
		for range maxTags {
			if h.EtherType != TypeVLAN && h.EtherType != TypeQinQ || len(b) < at+tagLen+2 {
				break
			}
			at += tagLen
			h.EtherType = binary.BigEndian.Uint16(b[at:])
		}
		h.L3 = at + 2
	case encap.IPv4:
		h.EtherType = TypeIPv4
	case encap.IPv6:
		h.EtherType = TypeIPv6
	default:
		return Headers{}
	}
	switch h.EtherType {
	case TypeIPv4:
		h.parseIPv4(b)
	case TypeIPv6:
		h.parseIPv6(b)
	}
	return h
}

func (h *Headers) parseIPv4(b []byte) {
	ip := b[h.L3:]
	if len(ip) < ipv4Len || ip[0]>>4 != 4 {
		return
	}
	header, total := int(ip[0]&0xf)*4, int(binary.BigEndian.Uint16(ip[2:]))
	if header < ipv4Len || total < header || total > len(ip) {
		return
	}
	h.Version, h.End, h.Protocol = 4, h.L3+total, ip[9]
	fragment := binary.BigEndian.Uint16(ip[6:])
	h.Fragment = fragment&0x3fff != 0
	if fragment&0x1fff == 0 {
		h.L4 = h.L3 + header
	}
}

// Extension headers of IPv6 (RFC 8200 section 4).
const (
	hopByHop    = 0
	routing     = 43
	fragment    = 44
	destination = 60
)

func (h *Headers) parseIPv6(b []byte) {
	ip := b[h.L3:]
	if len(ip) < ipv6Len || ip[0]>>4 != 6 {
		return
	}
	total := ipv6Len + int(binary.BigEndian.Uint16(ip[4:]))
	if total > len(ip) {
		return
	}
	h.Version, h.End, h.Protocol = 6, h.L3+total, ip[6]
	at := ipv6Len
	for range maxExtensions {
		n := 8
		switch h.Protocol {
		case hopByHop, routing, destination:
			if total >= at+2 {
				n += int(ip[at+1]) * 8
			}
		case fragment:
			h.Fragment = true
		default:
			h.L4 = h.L3 + at
			return
		}
		if total < at+n {
			return // it ends within
		}
		if h.Protocol == fragment && binary.BigEndian.Uint16(ip[at+2:])&^7 != 0 {
			return // not the first one
		}
		h.Protocol = ip[at]
		at += n
	}
}

// tcp returns the offset and the length of the TCP header, 0 when there is none.
func (h *Headers) tcp(b []byte) (at, n int) {
	if h.L4 == 0 || h.Protocol != ProtocolTCP || h.End < h.L4+tcpLen {
		return 0, 0
	}
	n = int(b[h.L4+12]>>4) * 4
	if n < tcpLen || h.L4+n > h.End {
		return 0, 0
	}
	return h.L4, n
}
