package wire

import "encoding/binary"

// The bytes before a datagram. A UD receive buffer begins with GRHLen bytes that
// say how the datagram came (IBA chapter 11, annex A17), and the payload follows:
//
//	RoCE v1      the GRH
//	RoCE v2 IPv6 the IPv6 header
//	RoCE v2 IPv4 20 bytes that mean nothing, then the IPv4 header

// grhOffIPv4 is where an IPv4 header lies in the bytes before a datagram.
const grhOffIPv4 = GRHLen - ipv4Len

// PutGRH writes the bytes before a datagram to b, which must have GRHLen bytes.
// Those that mean nothing are zero: 20 of IPv4, all of a native packet without
// GRH and of a packet that was not decoded.
func (p *Packet) PutGRH(b []byte) {
	b = b[:GRHLen]
	if p.Spec == nil {
		clear(b)
		return
	}
	switch p.Framing {
	case FramingV2IPv4:
		clear(b[:grhOffIPv4])
		copy(b[grhOffIPv4:], p.head[p.net:])
	case FramingV2IPv6, FramingV1:
		copy(b, p.head[p.net:])
	case FramingNativeGRH:
		copy(b, p.head[p.net+LRHLen:])
	default:
		clear(b)
	}
}

// GRH returns what PutGRH writes, in memory of the packet's own: it is good until
// the packet is decoded anew.
func (p *Packet) GRH() []byte {
	p.PutGRH(p.delivered[:])
	return p.delivered[:]
}

// OrigData returns the old value of an atomic acknowledge as it goes to memory, in
// host order. It is in memory of the packet's own, like GRH.
func (p *Packet) OrigData() []byte {
	b := p.delivered[:8]
	binary.NativeEndian.PutUint64(b, p.AtomicAckETH().OrigData)
	return b
}

// ParseReplyGRH finds out from the bytes before a datagram which way it came:
// Framing, Src, Dst, TClass, HopLimit and FlowLabel of the path are set, the rest
// is zero. A reply goes from its Dst to its Src. It returns ErrShort when b has
// fewer than GRHLen bytes and ErrGRH when they hold neither header.
//
// Nothing says which header it is, so IPv4 is recognised by all that is certain
// about it, its checksum included; the other two are told apart by what they say
// comes next.
func ParseReplyGRH(b []byte) (Path, error) {
	g, err := ParseGRH(b)
	if err != nil {
		return Path{}, err
	}
	if h := (*[ipv4Len]byte)(b[grhOffIPv4:]); h[0] == 0x45 && h[9] == protoUDP && ipv4SumOK(h) {
		return Path{
			Framing: FramingV2IPv4, TClass: h[1], HopLimit: h[8],
			Src: GIDFromIPv4([4]byte(h[12:])), Dst: GIDFromIPv4([4]byte(h[16:])),
		}, nil
	}
	f := FramingNone
	switch g.NxtHdr {
	case protoUDP:
		f = FramingV2IPv6
	case GRHNxtHdrIBA:
		f = FramingV1
	}
	if g.IPVer != grhIPVer || f == FramingNone {
		return Path{}, ErrGRH
	}
	return Path{
		Framing: f, TClass: g.TClass, HopLimit: g.HopLmt, FlowLabel: g.FlowLabel,
		Src: g.SGID, Dst: g.DGID,
	}, nil
}
