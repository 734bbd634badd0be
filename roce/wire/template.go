package wire

import (
	"encoding/binary"
	"fmt"
	"math/bits"
)

// Path is what all packets of one direction of a connection have in common. Src
// and Dst must both be IPv4-mapped with FramingV2IPv4 and neither with
// FramingV2IPv6.
type Path struct {
	Framing        Framing // FramingV2IPv4, FramingV2IPv6 or FramingV1
	SrcMAC, DstMAC [6]byte
	TClass         uint8 // IPv4 TOS or traffic class, with the ECN bits
	Tags           Tags  // VLAN tags
	Src, Dst       GID
	HopLimit       uint8  // IPv4 TTL or hop limit
	SrcPort        uint16 // UDP source port, see SourcePort
	FlowLabel      uint32 // of IPv6 and GRH, 20 bits
}

// maxPrefix is the longest run of bytes before the BTH.
const maxPrefix = ethLen + MaxTags*TagLen + ipv6Len + udpLen

// Template holds the ready-made bytes before the BTH. It is a plain value; the
// zero Template is of no use until Init. Concurrent use is safe after Init.
type Template struct {
	prefix  [maxPrefix]byte // with lengths, IPv4 identification and checksum zero
	framing Framing
	n       uint8  // length of prefix
	net     uint8  // offset of the network header
	sum     uint16 // ones' complement sum of the IPv4 header in prefix
	icrc    uint32 // icrcNet of the prefix
}

// Init makes the template of a path. The error wraps ErrPath and names the field.
func (t *Template) Init(p Path) error {
	if err := p.check(); err != nil {
		return err
	}
	*t = Template{framing: p.Framing}
	b := t.prefix[:]
	copy(b, p.DstMAC[:])
	copy(b[6:], p.SrcMAC[:])
	n := 12
	n += p.Tags.Put(b[n:])
	t.net = uint8(n + 2)
	t.n = t.net + uint8(p.Framing.netLen())
	h := b[t.net:t.n]
	switch p.Framing {
	case FramingV2IPv4:
		binary.BigEndian.PutUint16(b[n:], etherTypeIPv4)
		p.putIPv4(h)
		p.putUDP(h[ipv4Len:])
		t.sum = ipv4Sum((*[ipv4Len]byte)(h))
	case FramingV2IPv6:
		binary.BigEndian.PutUint16(b[n:], etherTypeIPv6)
		p.putGRH(h, protoUDP)
		p.putUDP(h[ipv6Len:])
	case FramingV1:
		binary.BigEndian.PutUint16(b[n:], EtherTypeV1)
		p.putGRH(h, GRHNxtHdrIBA)
	}
	t.icrc = icrcNet(p.Framing, h)
	return nil
}

// check says what is wrong with the path.
func (p *Path) check() error {
	switch p.Framing {
	case FramingV2IPv4:
		if !p.Src.IsIPv4() || !p.Dst.IsIPv4() {
			return fmt.Errorf("%w: %s from %s to %s: want IPv4-mapped GIDs",
				ErrPath, p.Framing, p.Src, p.Dst)
		}
	case FramingV2IPv6:
		if p.Src.IsIPv4() || p.Dst.IsIPv4() {
			return fmt.Errorf("%w: %s from %s to %s: want IPv6 GIDs",
				ErrPath, p.Framing, p.Src, p.Dst)
		}
	case FramingV1:
	default:
		return fmt.Errorf("%w: framing %s: want RoCE v1 or v2", ErrPath, p.Framing)
	}
	if !p.Tags.check() {
		return fmt.Errorf("%w: VLAN tags %x: want those of 802.1Q and 802.1ad", ErrPath, p.Tags)
	}
	if p.FlowLabel > flowLabelMask {
		return fmt.Errorf("%w: flow label 0x%x: want 20 bits", ErrPath, p.FlowLabel)
	}
	return nil
}

// putIPv4 writes the IPv4 header without length, identification and checksum.
func (p *Path) putIPv4(h []byte) {
	src, dst := p.Src.IPv4(), p.Dst.IPv4()
	h[0] = 0x45
	h[1] = p.TClass
	h[6] = 0x40 // do not fragment
	h[8] = p.HopLimit
	h[9] = protoUDP
	copy(h[12:], src[:])
	copy(h[16:], dst[:])
}

// putGRH writes an IPv6 header or GRH without length.
func (p *Path) putGRH(h []byte, next uint8) {
	GRH{
		IPVer: grhIPVer, TClass: p.TClass, FlowLabel: p.FlowLabel, NxtHdr: next,
		HopLmt: p.HopLimit, SGID: p.Src, DGID: p.Dst,
	}.Put(h)
}

// putUDP writes the UDP header without length; the checksum stays zero.
func (p *Path) putUDP(h []byte) {
	binary.BigEndian.PutUint16(h, p.SrcPort)
	binary.BigEndian.PutUint16(h[2:], UDPPort)
}

// Len is the number of bytes before the BTH.
func (t *Template) Len() int { return int(t.n) }

// FrameLen is the length of a frame with n bytes from the BTH through the
// padding.
func (t *Template) FrameLen(n int) int { return int(t.n) + n + ICRCLen }

// Seal finishes a packet. frame[t.Len():t.Len()+n] already holds the BTH through
// the padding, n a multiple of 4 and at least BTHLen. Seal writes the network
// headers before it and the ICRC behind it, and returns the length of the frame,
// which has no Ethernet padding. ipID is the IPv4 identification. frame must have
// t.FrameLen(n) bytes. Nothing is allocated.
//
// The register of the ICRC over a header is that over the prefix, known since
// Init, xor what the fields left zero there add to it.
func (t *Template) Seal(frame []byte, n int, ipID uint16) int {
	off := int(t.n)
	end := off + n
	frame = frame[:end+ICRCLen]
	copy(frame, t.prefix[:off])
	h := frame[t.net:off]
	reg := t.icrc
	switch t.framing {
	case FramingV2IPv4:
		reg ^= t.sealIPv4((*[ipv4Len + udpLen]byte)(h), uint16(udpLen+n+ICRCLen), ipID)
	case FramingV2IPv6:
		udp := uint16(udpLen + n + ICRCLen)
		binary.BigEndian.PutUint16(h[grhOffPayLen:], udp)
		binary.BigEndian.PutUint16(h[ipv6Len+4:], udp)
		// The register is over 44 bytes and these are 4 and 5: 39 and 38 follow.
		reg ^= slicing[39][udp>>8] ^ slicing[38][udp&0xff] ^ uint32(bits.ReverseBytes16(udp))
	case FramingV1:
		n := uint16(n + ICRCLen)
		binary.BigEndian.PutUint16(h[grhOffPayLen:], n)
		// Here it is over 36 bytes.
		reg ^= slicing[31][n>>8] ^ slicing[30][n&0xff]
	}
	reg = crcBTH(reg, (*[BTHLen]byte)(frame[off:]))
	reg = crcUpdate(reg, frame[off+BTHLen:end])
	binary.LittleEndian.PutUint32(frame[end:], ^reg)
	return end + ICRCLen
}

// sealIPv4 writes what is missing in the headers of IPv4 and UDP, and returns
// what it adds to the register over them.
func (t *Template) sealIPv4(h *[ipv4Len + udpLen]byte, udp, ipID uint16) uint32 {
	total := ipv4Len + udp
	binary.BigEndian.PutUint16(h[2:], total)
	binary.BigEndian.PutUint16(h[4:], ipID)
	binary.BigEndian.PutUint16(h[10:], ^fold(uint64(t.sum)+uint64(total)+uint64(ipID)))
	binary.BigEndian.PutUint16(h[ipv4Len+4:], udp)
	// The register is over 24 bytes, of which these are 2 to 5; the UDP length is
	// in the word behind it.
	s := slicing
	return s[21][total>>8] ^ s[20][total&0xff] ^ s[19][ipID>>8] ^ s[18][ipID&0xff] ^
		uint32(bits.ReverseBytes16(udp))
}
