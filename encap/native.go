package encap

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// DecodeNative reads a native packet from its LRH through its VCRC, in one or two pieces; what
// is behind it, the padding of Ethernet, is ignored. The format follows from the LNH. All
// headers must lie in head. p borrows both pieces. With a reason there is nothing in p.
func (p *Packet) DecodeNative(head, tail []byte) Reason {
	*p = Packet{}
	vcrc, r := p.decodeNative(head, tail)
	if r == OK && !p.checkVCRC(head, tail, vcrc) {
		r = BadVCRC
	}
	if r != OK {
		*p = Packet{}
	}
	return r
}

// decodeNative is DecodeNative without the VCRC, and returns where that is.
func (p *Packet) decodeNative(head, tail []byte) (vcrc int, r Reason) {
	lrh, err := wire.ParseLRH(head)
	if err != nil {
		return 0, short(tail)
	}
	if lrh.LVer != 0 {
		return 0, BadLRH
	}
	vcrc = 4 * int(lrh.PktLen)
	if vcrc+wire.VCRCLen > len(head)+len(tail) {
		return 0, Truncated
	}
	p.LRH = lrh
	switch lrh.LNH {
	case wire.LNHRaw:
		r = p.decodeRWH(head, tail, vcrc)
	case wire.LNHIPv6:
		p.Format, p.Kind = RawIPv6, IPv6
		if r = p.between(head, tail, wire.LRHLen, vcrc); r == OK {
			r = p.trim()
		}
	case wire.LNHGlobal:
		r = p.decodeGRH(head, tail, vcrc)
	default:
		r = NotRaw
	}
	if r == OK {
		r = p.checkDatagram()
	}
	return vcrc, r
}

// short is why a header ends too soon.
func short(tail []byte) Reason {
	if len(tail) > 0 {
		return SplitHeader
	}
	return Truncated
}

// between takes what is from one offset to another for the datagram.
func (p *Packet) between(head, tail []byte, from, to int) Reason {
	switch {
	case to < from:
		return BadLength
	case from > len(head):
		return short(tail)
	case to <= len(head):
		p.Datagram, p.Tail = head[from:to:to], nil
	default:
		to -= len(head)
		p.Datagram, p.Tail = head[from:], tail[:to:to]
	}
	return OK
}

// decodeRWH reads the packet behind an LRH whose LNH is 0.
func (p *Packet) decodeRWH(head, tail []byte, end int) Reason {
	const off = wire.LRHLen
	p.Format = Raw
	if end < off+wire.RWHLen {
		return BadLength
	}
	rwh, err := wire.ParseRWH(head[off:])
	if err != nil {
		return short(tail)
	}
	if r := p.between(head, tail, off+wire.RWHLen, end); r != OK {
		return r
	}
	if rwh.EtherType == EtherTypeSegment {
		if len(p.Datagram) < WordLen {
			return short(p.Tail)
		}
		if r := p.decodeWord(p.Datagram); r != OK {
			return r
		}
	} else if p.Kind = specs[Raw].kind(rwh.EtherType); p.Kind == 0 {
		return UnknownType
	}
	reserved := head[off+rwhOffPad]
	if reserved&rwhPadTold == 0 {
		return p.trimForeign(rwh.EtherType)
	}
	n := p.Len() - int(reserved&rwhPadMask)
	if n < 0 {
		return BadLength
	}
	p.shorten(n)
	return OK
}

// decodeGRH reads the packet behind an LRH whose LNH is 3.
func (p *Packet) decodeGRH(head, tail []byte, end int) Reason {
	const off = wire.LRHLen
	p.Format = RawGRH
	if end < off+wire.GRHLen {
		return BadLength
	}
	grh, err := wire.ParseGRH(head[off:])
	switch {
	case err != nil:
		return short(tail)
	case grh.IPVer != grhIPVer:
		return BadGRH
	case grh.NxtHdr == wire.GRHNxtHdrIBA:
		return NotRaw
	}
	if p.Kind = specs[RawGRH].kind(uint16(grh.NxtHdr)); p.Kind == 0 {
		return UnknownType
	}
	p.GRH = grh
	if r := p.between(head, tail, off+wire.GRHLen, end); r != OK {
		return r
	}
	return p.trimTo(int(grh.PayLen))
}

// trim cuts the padding off an IP or ARP datagram, which says itself how long it is.
func (p *Packet) trim() Reason {
	b := p.Datagram
	if len(b) < p.Kind.MinLen() && len(p.Tail) > 0 {
		return SplitHeader
	}
	if len(b) < p.Kind.MinLen() {
		return TooShort
	}
	if r := p.Kind.check(b[0], p.Len()); r != OK {
		return r
	}
	return p.trimTo(ownLength(p.Kind, b))
}

// trimForeign cuts the padding off a datagram of a sender that does not tell how much there is:
// where the datagram does not either, padding stays behind it, as that of Ethernet does.
func (p *Packet) trimForeign(etherType uint16) Reason {
	switch etherType {
	case EtherTypeSegment: // nobody else has these
		return BadLength
	case etherTypeTEB:
		return OK
	}
	return p.trim()
}

// trimTo leaves n bytes, which must be what was there less at most three.
func (p *Packet) trimTo(n int) Reason {
	if n > p.Len() || n < p.Len()-3 {
		return BadLength
	}
	p.shorten(n)
	return OK
}

// ownLength is the length in bytes that a datagram says that it has. It must have the MinLen
// of its kind.
func ownLength(k Kind, b []byte) int {
	switch k {
	case IPv4:
		return int(binary.BigEndian.Uint16(b[2:]))
	case IPv6:
		return IPv6.MinLen() + int(binary.BigEndian.Uint16(b[4:]))
	default: // ARP, RARP: lengths of a hardware and of a protocol address
		return ARP.MinLen() + 2*(int(b[4])+int(b[5]))
	}
}

// checkVCRC reports whether the VCRC at an offset is that of the bytes before it.
func (p *Packet) checkVCRC(head, tail []byte, at int) bool {
	var vcrc [wire.VCRCLen]byte
	for i := range vcrc {
		if at+i < len(head) {
			vcrc[i] = head[at+i]
		} else {
			vcrc[i] = tail[at+i-len(head)]
		}
	}
	n := min(at, len(head))
	return wire.CheckVCRC(head[:n], tail[:at-n], vcrc[:])
}
