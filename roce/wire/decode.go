package wire

import (
	"encoding/binary"
	"math/bits"
)

// Decode parses an Ethernet frame without FCS that lies in one or two pieces
// and tells why it is not a well-formed RoCE packet, or OK. All headers must lie
// in head; tail may be nil. p borrows both pieces.
//
// Lengths come from the IP, UDP and GRH headers, never from the frame, so bytes
// behind the ICRC (Ethernet padding) are accepted. Up to MaxTags VLAN tags are accepted.
// Fragments, IPv4 options and IPv6 extension headers are refused. The UDP
// checksum is not looked at: the ICRC protects more. Whether the payload agrees
// with the path MTU is left to the queue pair, which knows it; sizes that an
// opcode fixes are checked here.
//
// The ICRC is not checked: see VerifyICRC. Nothing is allocated.
func (p *Packet) Decode(head, tail []byte) Reason {
	r := p.decodeEthernet(head, tail)
	if r != OK {
		p.refuse()
	}
	return r
}

// refuse makes the accessors of a packet that was not accepted return nothing.
func (p *Packet) refuse() {
	p.Spec, p.Payload, p.PayloadTail = nil, nil, nil
}

// short is the reason when head ends inside a header.
func short(tail []byte) Reason {
	if len(tail) != 0 {
		return SplitHeader
	}
	return Truncated
}

// decodeEthernet and what it calls set every field of an accepted packet, so that
// nothing has to be cleared before.
func (p *Packet) decodeEthernet(head, tail []byte) Reason {
	if len(head) < ethLen {
		return short(tail)
	}
	p.DstMAC = [6]byte(head)
	p.SrcMAC = [6]byte(head[6:])
	p.Tags = Tags{}
	p.LRH = LRH{}
	etherType := binary.BigEndian.Uint16(head[12:])
	net := ethLen
	if isTPID(etherType) {
		var ok bool
		if p.Tags, etherType, net, ok = ParseTags(head); !ok {
			return short(tail)
		}
	}
	p.net = net
	switch etherType {
	case etherTypeIPv4:
		return p.decodeIPv4(head, tail, net)
	case etherTypeIPv6:
		return p.decodeIPv6(head, tail, net)
	case EtherTypeV1:
		return p.decodeGRH(head, tail, FramingV1, net)
	default:
		return NotRoCE
	}
}

// decodeIPv4 checks the IPv4 header at off (RFC 791) and goes on with UDP.
func (p *Packet) decodeIPv4(head, tail []byte, off int) Reason {
	if len(head) < off+ipv4Len {
		return short(tail)
	}
	h := (*[ipv4Len]byte)(head[off:])
	if h[9] != protoUDP {
		return NotRoCE
	}
	if h[0] != 0x45 {
		if h[0]>>4 == 4 && h[0]&0xf > 5 {
			return IPOptions
		}
		return BadIPHeader
	}
	if binary.BigEndian.Uint16(h[6:])&ipv4Fragment != 0 {
		return Fragment
	}
	if !ipv4SumOK(h) {
		return BadIPChecksum
	}
	total := int(binary.BigEndian.Uint16(h[2:]))
	if total < ipv4Len+udpLen {
		return BadIPLength
	}
	p.Framing = FramingV2IPv4
	p.TClass, p.HopLimit = h[1], h[8]
	p.IPID, p.FlowLabel = binary.BigEndian.Uint16(h[4:]), 0
	p.Src.setIPv4((*[4]byte)(h[12:]))
	p.Dst.setIPv4((*[4]byte)(h[16:]))
	return p.decodeUDP(head, tail, off+ipv4Len, total-ipv4Len)
}

// ipv4SumOK reports whether the header checksum is right (RFC 1071): the ones'
// complement sum is then 0xffff, and any sum of words is a multiple of that, in
// whichever byte order. It wants a header that is not all zero.
func ipv4SumOK(h *[ipv4Len]byte) bool {
	s, c := bits.Add64(binary.LittleEndian.Uint64(h[:]), binary.LittleEndian.Uint64(h[8:]), 0)
	s, c = bits.Add64(s, uint64(binary.LittleEndian.Uint32(h[16:])), c)
	return (s+c)%0xffff == 0
}

// ipv4Sum is the ones' complement sum of a header.
func ipv4Sum(h *[ipv4Len]byte) uint16 {
	return fold(uint64(binary.BigEndian.Uint32(h[:])) +
		uint64(binary.BigEndian.Uint32(h[4:])) +
		uint64(binary.BigEndian.Uint32(h[8:])) +
		uint64(binary.BigEndian.Uint32(h[12:])) +
		uint64(binary.BigEndian.Uint32(h[16:])))
}

// fold brings a sum of 32-bit words down to 16 bits in ones' complement.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// decodeIPv6 checks the IPv6 header at off (RFC 8200) and goes on with UDP.
func (p *Packet) decodeIPv6(head, tail []byte, off int) Reason {
	if len(head) < off+ipv6Len {
		return short(tail)
	}
	h := (*[ipv6Len]byte)(head[off:])
	word := binary.BigEndian.Uint32(h[:])
	if word>>28 != 6 {
		return BadIPHeader
	}
	switch h[6] {
	case protoUDP:
	case 44: // fragment header
		return Fragment
	case 0, 43, 51, 60, 135, 139, 140: // the other extension headers (IANA)
		return IPOptions
	default:
		return NotRoCE
	}
	p.Framing = FramingV2IPv6
	p.TClass, p.HopLimit = uint8(word>>20), h[7]
	p.IPID, p.FlowLabel = 0, word&flowLabelMask
	p.Src, p.Dst = GID(h[8:]), GID(h[24:])
	return p.decodeUDP(head, tail, off+ipv6Len, int(binary.BigEndian.Uint16(h[4:])))
}

// decodeUDP checks the UDP header at off (RFC 768), for which IP left room bytes.
func (p *Packet) decodeUDP(head, tail []byte, off, room int) Reason {
	if len(head) < off+udpLen {
		return short(tail)
	}
	h := (*[udpLen]byte)(head[off:])
	if binary.BigEndian.Uint16(h[2:]) != UDPPort {
		return NotRoCE
	}
	if room < udpLen {
		return BadIPLength
	}
	n := int(binary.BigEndian.Uint16(h[4:]))
	if n != room {
		return BadUDPLength
	}
	p.SrcPort = binary.BigEndian.Uint16(h[:])
	return p.decodeTransport(head, tail, off+udpLen, n-udpLen)
}

// decodeGRH checks the GRH at off and goes on with the BTH.
func (p *Packet) decodeGRH(head, tail []byte, f Framing, off int) Reason {
	g, err := ParseGRH(head[off:])
	if err != nil {
		return short(tail)
	}
	if g.IPVer != grhIPVer || g.NxtHdr != GRHNxtHdrIBA {
		return BadGRH
	}
	p.Framing = f
	p.TClass, p.HopLimit, p.FlowLabel = g.TClass, g.HopLmt, g.FlowLabel
	p.Src, p.Dst = g.SGID, g.DGID
	p.IPID, p.SrcPort = 0, 0
	return p.decodeTransport(head, tail, off+GRHLen, int(g.PayLen))
}

// decodeTransport checks the n bytes from the BTH at off through the ICRC.
func (p *Packet) decodeTransport(head, tail []byte, off, n int) Reason {
	if n < BTHLen+ICRCLen || n&3 != 0 {
		return BadLength
	}
	end := off + n
	if end > len(head)+len(tail) {
		return Truncated
	}
	if off+BTHLen > len(head) {
		return SplitHeader
	}
	bth := (*[BTHLen]byte)(head[off:])
	if bth[bthOffFlags]&bthTVer != 0 {
		return BadTVer
	}
	spec := Opcode(bth[0]).Spec()
	if !spec.Known {
		return UnknownOpcode
	}
	start := off + BTHLen + int(spec.HeaderLen)
	payload := end - ICRCLen - start
	if payload < 0 {
		return BadLength
	}
	if payload -= int(bth[bthOffFlags] >> bthPadShift & 3); payload < 0 {
		return BadPad
	}
	if !spec.Payload.allowsFixed(payload) {
		return BadPayloadSize
	}
	if start > len(head) {
		return SplitHeader
	}
	p.bth, p.end = off, end
	p.head, p.tail, p.Spec = head, tail, spec
	if to := start + payload; to <= len(head) {
		p.Payload, p.PayloadTail = head[start:to:to], nil
	} else {
		to -= len(head)
		p.Payload, p.PayloadTail = head[start:], tail[:to:to]
	}
	p.BTH.read(bth)
	return OK
}
