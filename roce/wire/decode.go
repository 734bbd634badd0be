package wire

import "encoding/binary"

// Decode parses an Ethernet frame without FCS that lies in one or two pieces
// and tells why it is not a well-formed RoCE packet, or OK. All headers must lie
// in head; tail may be nil. p borrows both pieces.
//
// Lengths come from the IP, UDP and GRH headers, never from the frame, so bytes
// behind the ICRC (Ethernet padding) are accepted. One 802.1Q tag is accepted.
// Fragments, IPv4 options and IPv6 extension headers are refused. The UDP
// checksum is not looked at: the ICRC protects more. Whether the payload agrees
// with the path MTU is left to the queue pair, which knows it; sizes that an
// opcode fixes are checked here.
//
// The ICRC is not checked: see VerifyICRC. Nothing is allocated.
func (p *Packet) Decode(head, tail []byte) Reason {
	p.reset(head, tail)
	if len(head) < ethLen {
		return short(tail)
	}
	p.DstMAC, p.SrcMAC = [6]byte(head[0:]), [6]byte(head[6:])
	p.Tagged = false
	etherType := binary.BigEndian.Uint16(head[12:])
	net := ethLen
	if etherType == etherTypeVLAN {
		if len(head) < ethLen+vlanLen {
			return short(tail)
		}
		p.Tagged = true
		p.VLAN = binary.BigEndian.Uint16(head[14:])
		etherType = binary.BigEndian.Uint16(head[16:])
		net += vlanLen
	}
	p.net = net
	switch etherType {
	case etherTypeIPv4:
		return p.decodeIPv4()
	case etherTypeIPv6:
		return p.decodeIPv6()
	case EtherTypeV1:
		return p.decodeGRH(FramingV1, net)
	default:
		return NotRoCE
	}
}

// reset forgets the packet before.
func (p *Packet) reset(head, tail []byte) {
	p.head, p.tail = head, tail
	p.LRH, p.Spec = LRH{}, nil
	p.Payload, p.PayloadTail = nil, nil
	p.net, p.bth, p.end = 0, 0, 0
	p.SrcPort, p.IPID, p.VLAN, p.FlowLabel = 0, 0, 0, 0
}

// short is the reason when head ends inside a header.
func short(tail []byte) Reason {
	if len(tail) != 0 {
		return SplitHeader
	}
	return Truncated
}

// decodeIPv4 checks the IPv4 header (RFC 791) and goes on with UDP.
func (p *Packet) decodeIPv4() Reason {
	h := p.head[p.net:]
	if len(h) < ipv4Len {
		return short(p.tail)
	}
	h = h[:ipv4Len]
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
	if ipv4Sum(h) != 0xffff {
		return BadIPChecksum
	}
	total := int(binary.BigEndian.Uint16(h[2:]))
	if total < ipv4Len+udpLen {
		return BadIPLength
	}
	p.Framing = FramingV2IPv4
	p.TClass, p.HopLimit = h[1], h[8]
	p.IPID = binary.BigEndian.Uint16(h[4:])
	p.Src, p.Dst = GIDFromIPv4([4]byte(h[12:])), GIDFromIPv4([4]byte(h[16:]))
	return p.decodeUDP(p.net+ipv4Len, total-ipv4Len)
}

// ipv4Sum is the ones' complement sum of a 20-byte header (RFC 1071): 0xffff
// when the checksum in it is right.
func ipv4Sum(h []byte) uint16 {
	_ = h[ipv4Len-1]
	s := uint64(binary.BigEndian.Uint32(h)) +
		uint64(binary.BigEndian.Uint32(h[4:])) +
		uint64(binary.BigEndian.Uint32(h[8:])) +
		uint64(binary.BigEndian.Uint32(h[12:])) +
		uint64(binary.BigEndian.Uint32(h[16:]))
	return fold(s)
}

// fold brings a sum of 32-bit words down to 16 bits in ones' complement.
func fold(s uint64) uint16 {
	s = s>>32 + s&0xffffffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	s = s>>16 + s&0xffff
	return uint16(s)
}

// decodeIPv6 checks the IPv6 header (RFC 8200) and goes on with UDP.
func (p *Packet) decodeIPv6() Reason {
	h := p.head[p.net:]
	if len(h) < ipv6Len {
		return short(p.tail)
	}
	h = h[:ipv6Len]
	word := binary.BigEndian.Uint32(h)
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
	p.FlowLabel = word & flowLabelMask
	p.Src, p.Dst = GID(h[8:]), GID(h[24:])
	return p.decodeUDP(p.net+ipv6Len, int(binary.BigEndian.Uint16(h[4:])))
}

// decodeUDP checks the UDP header at off (RFC 768), for which IP left room bytes.
func (p *Packet) decodeUDP(off, room int) Reason {
	if len(p.head) < off+udpLen {
		return short(p.tail)
	}
	h := p.head[off : off+udpLen]
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
	p.SrcPort = binary.BigEndian.Uint16(h)
	return p.decodeTransport(off+udpLen, n-udpLen)
}

// decodeGRH checks the GRH at off and goes on with the BTH.
func (p *Packet) decodeGRH(f Framing, off int) Reason {
	g, err := ParseGRH(p.head[off:])
	if err != nil {
		return short(p.tail)
	}
	if g.IPVer != grhIPVer || g.NxtHdr != GRHNxtHdrIBA {
		return BadGRH
	}
	p.Framing = f
	p.TClass, p.HopLimit, p.FlowLabel = g.TClass, g.HopLmt, g.FlowLabel
	p.Src, p.Dst = g.SGID, g.DGID
	return p.decodeTransport(off+GRHLen, int(g.PayLen))
}

// decodeTransport checks the n bytes from the BTH at off through the ICRC.
func (p *Packet) decodeTransport(off, n int) Reason {
	if n < BTHLen+ICRCLen || n&3 != 0 {
		return BadLength
	}
	end := off + n
	if end > len(p.head)+len(p.tail) {
		return Truncated
	}
	if off+BTHLen > len(p.head) {
		return SplitHeader
	}
	p.BTH.read(p.head[off : off+BTHLen])
	if p.BTH.TVer != 0 {
		return BadTVer
	}
	spec := p.BTH.Opcode.Spec()
	if !spec.Known {
		return UnknownOpcode
	}
	payload := n - BTHLen - int(spec.HeaderLen) - ICRCLen
	if payload < 0 {
		return BadLength
	}
	if payload -= int(p.BTH.PadCnt); payload < 0 {
		return BadPad
	}
	if !spec.Payload.allowsFixed(payload) {
		return BadPayloadSize
	}
	start := off + BTHLen + int(spec.HeaderLen)
	if start > len(p.head) {
		return SplitHeader
	}
	p.Spec, p.bth, p.end = spec, off, end
	p.setPayload(start, start+payload)
	return OK
}

// setPayload points at bytes from to to of the frame, which lie inside it.
func (p *Packet) setPayload(from, to int) {
	if to <= len(p.head) {
		p.Payload = p.head[from:to:to]
		return
	}
	p.Payload = p.head[from:]
	p.PayloadTail = p.tail[: to-len(p.head) : to-len(p.head)]
}
