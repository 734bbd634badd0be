package wire

// DecodeNative parses a native InfiniBand packet from its LRH through its VCRC,
// or through its ICRC when the VCRC was cut off, and tells why it is not a
// well-formed transport packet, or OK. Raw packets (LNHRaw, LNHIPv6) have no
// BTH: NotRoCE. All headers must lie in head. p borrows both pieces.
func (p *Packet) DecodeNative(head, tail []byte) Reason {
	r := p.decodeLRH(head, tail)
	if r != OK {
		p.refuse()
	}
	return r
}

// decodeLRH checks the LRH and goes on with what it says follows.
func (p *Packet) decodeLRH(head, tail []byte) Reason {
	lrh, err := ParseLRH(head)
	if err != nil {
		return short(tail)
	}
	if lrh.LVer != 0 {
		return BadLRH
	}
	p.SrcMAC, p.DstMAC, p.Tags = [6]byte{}, [6]byte{}, Tags{}
	p.LRH = lrh
	p.net = 0
	n := int(lrh.PktLen)*4 - LRHLen
	switch lrh.LNH {
	case LNHLocal:
		p.Framing = FramingNative
		p.TClass, p.HopLimit, p.FlowLabel = 0, 0, 0
		p.Src, p.Dst = GID{}, GID{}
		p.IPID, p.SrcPort = 0, 0
		if n < 0 {
			return BadLRH
		}
		return p.decodeTransport(head, tail, LRHLen, n)
	case LNHGlobal:
		r := p.decodeGRH(head, tail, FramingNativeGRH, LRHLen)
		if r == OK && p.end != LRHLen+n {
			return BadLRH
		}
		return r
	default:
		return NotRoCE
	}
}

// VerifyVCRC reports whether the variant CRC behind a native packet is there and
// right.
func (p *Packet) VerifyVCRC() bool {
	if p.Spec == nil || p.Framing != FramingNative && p.Framing != FramingNativeGRH ||
		p.end+VCRCLen > len(p.head)+len(p.tail) {
		return false
	}
	var tail []byte
	if n := p.end - len(p.head); n > 0 {
		tail = p.tail[:n]
	}
	carried := []byte{p.byteAt(p.end), p.byteAt(p.end + 1)}
	return CheckVCRC(p.head[:min(p.end, len(p.head))], tail, carried)
}
