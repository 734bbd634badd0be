package dissect

import (
	"encoding/binary"
	"net/netip"

	"xroce/encap"
	"xroce/roce/wire"
)

// Numbers of protocols above IP, and of ports.
const (
	protoICMP   = 1
	protoIPv4   = 4
	protoTCP    = 6
	protoUDP    = 17
	protoIPv6   = 41
	protoGRE    = 47
	protoICMPv6 = 58

	portVXLAN    = 4789
	portVXLANOld = 8472 // of Linux, before the other was given out

	etherRoCEv1 = wire.EtherTypeV1
	etherNative = encap.EtherTypeNative
)

// Lengths of headers in bytes.
const (
	ipv4Len  = 20
	ipv6Len  = 40
	udpLen   = 8
	tcpLen   = 20
	vxlanLen = 8
	greLen   = 4

	erspan2Len   = 8
	erspan3Len   = 12
	erspanSubLen = 8
)

// ip reads an IP header of either version.
func (d *Dissector) ip(off int, p *Packet) {
	b := p.left(off)
	switch {
	case len(b) >= ipv4Len && b[0]>>4 == 4 && !p.full():
		d.ipv4(off, p)
	case len(b) >= ipv6Len && b[0]>>4 == 6 && !p.full():
		d.ipv6(off, p)
	default:
		p.add(Other, off, len(b))
	}
}

func (d *Dissector) ipv4(off int, p *Packet) {
	b := p.left(off)
	n := int(b[0]&0xf) * 4
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[12:])), netip.AddrFrom4([4]byte(b[16:]))
	if n < ipv4Len || n > len(b) {
		p.add(IPv4, off, ipv4Len)
		return
	}
	p.add(IPv4, off, n)
	if binary.BigEndian.Uint16(b[6:])&(ipv4More|ipv4Offset) != 0 {
		d.fragmentV4(off, n, p)
		return
	}
	d.protocol(b[9], etherIPv4, off, off+n, p)
}

func (d *Dissector) ipv6(off int, p *Packet) {
	b := p.left(off)
	p.Src, p.Dst = netip.AddrFrom16([16]byte(b[8:])), netip.AddrFrom16([16]byte(b[24:]))
	p.add(IPv6, off, ipv6Len)
	next, at := b[6], off+ipv6Len
	named := off + 6 // where next is
	for !p.full() {
		ext := p.left(at)
		n := 8
		switch {
		case next == ipv6Fragment && len(ext) >= ipv6FragLen:
			p.add(IPv6Extension, at, ipv6FragLen)
			d.fragmentV6(off, at, named, p)
			return
		case (next == 0 || next == 43 || next == 60 || next == 135) && len(ext) >= n:
			n += 8 * int(ext[1])
		default:
			d.protocol(next, etherIPv6, off, at, p)
			return
		}
		if n > len(ext) {
			break
		}
		p.add(IPv6Extension, at, n)
		next, named = ext[0], at
		at += n
	}
	p.add(Other, at, len(p.left(at)))
}

// protocol reads what is behind an IP header, which begins at net and has the EtherType t.
func (d *Dissector) protocol(proto byte, t uint16, net, off int, p *Packet) {
	b := p.left(off)
	switch {
	case proto == protoUDP && len(b) >= udpLen:
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		p.add(UDP, off, udpLen)
		switch p.DstPort {
		case wire.UDPPort:
			p.Around = true
			d.roce(t, net, off+udpLen, p)
		case portVXLAN, portVXLANOld:
			d.vxlan(off+udpLen, p)
		default:
			p.add(Payload, off+udpLen, len(b)-udpLen)
		}
	case proto == protoTCP && len(b) >= tcpLen:
		p.SrcPort, p.DstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
		p.add(TCP, off, len(b))
	case proto == protoICMP, proto == protoICMPv6:
		p.add(ICMP, off, len(b))
	case proto == protoGRE && len(b) >= greLen:
		d.gre(off, p)
	case proto == protoIPv4, proto == protoIPv6:
		d.ip(off, p)
	default:
		p.add(Other, off, len(b))
	}
}

// vxlan reads the header of RFC 7348.
func (d *Dissector) vxlan(off int, p *Packet) {
	b := p.left(off)
	if len(b) < vxlanLen || b[0]&8 == 0 {
		p.add(Other, off, len(b))
		return
	}
	p.add(VXLAN, off, vxlanLen)
	p.Tunnel = true
	d.ethernet(off+vxlanLen, p)
}

// gre reads the header of RFC 2784 and RFC 2890, and those of ERSPAN behind it.
func (d *Dissector) gre(off int, p *Packet) {
	const checksum, key, sequence = 0x80, 0x20, 0x10
	b := p.left(off)
	n := greLen
	for _, bit := range [...]byte{checksum, key, sequence} {
		if b[0]&bit != 0 {
			n += 4
		}
	}
	if b[1]&7 != 0 || n > len(b) { // another version
		p.add(Other, off, len(b))
		return
	}
	p.add(GRE, off, n)
	p.Tunnel = true
	t := binary.BigEndian.Uint16(b[2:])
	at := off + n
	inner := p.left(at)
	switch {
	case t == etherERSPAN2 && b[0]&sequence == 0: // version 1, which has no header
		d.ethernet(at, p)
	case t == etherERSPAN2 && len(inner) >= erspan2Len:
		p.add(ERSPAN, at, erspan2Len)
		d.ethernet(at+erspan2Len, p)
	case t == etherERSPAN3 && len(inner) >= erspan3Len:
		n := erspan3Len
		if inner[erspan3Len-1]&1 != 0 {
			n += erspanSubLen
		}
		p.add(ERSPAN, at, min(n, len(inner)))
		d.ethernet(at+n, p)
	default:
		d.etherType(t, at, p)
	}
}
