package dissect

import (
	"net/netip"

	"xroce/encap"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// missing stands for the bytes of a packet that a capture did not keep.
var missing [1 << 16]byte

// managerQP is the queue pair of the connection manager.
const managerQP = 1

// tail is what a capture did not keep of the packet.
func (p *Packet) tail() []byte { return missing[:min(p.lacks, len(missing))] }

// roce reads a packet of RoCE from its network header on. Its BTH is at bth.
func (d *Dissector) roce(t uint16, net, bth int, p *Packet) {
	src, dst := p.SrcMAC, p.DstMAC
	b := p.left(net)
	if p.Fragment {
		b = d.fragments.whole
	}
	r := p.RoCE.DecodeNetwork(t, b, nil)
	if r == wire.Truncated && p.lacks > 0 {
		r = p.RoCE.DecodeNetwork(t, b, p.tail())
		p.Snapped = r == wire.OK
	}
	p.RoCE.SrcMAC, p.RoCE.DstMAC = src, dst
	if p.Refused = r; r != wire.OK {
		off := net
		if p.count > 0 && p.etherType != etherRoCEv1 {
			last := p.layers[p.count-1]
			off = last.Off + last.Len
		}
		p.add(Other, off, len(p.left(off)))
		return
	}
	if t == etherRoCEv1 {
		p.add(GRH, net, wire.GRHLen)
		p.Src, p.Dst = addr(p.RoCE.Src), addr(p.RoCE.Dst)
	}
	d.transport(bth, p)
}

// addr is a GID as an address.
func addr(g wire.GID) netip.Addr { return netip.AddrFrom16(g).Unmap() }

// native reads a packet of InfiniBand from its LRH on.
func (d *Dissector) native(off int, p *Packet) {
	b := p.left(off)
	lrh, err := wire.ParseLRH(b)
	if err != nil || p.full() {
		p.add(Other, off, len(b))
		return
	}
	p.Around = true
	p.add(LRH, off, wire.LRHLen)
	r := p.RoCE.DecodeNative(b, nil)
	if r == wire.Truncated && p.lacks > 0 {
		r = p.RoCE.DecodeNative(b, p.tail())
		p.Snapped = r == wire.OK
	}
	p.Refused = r
	switch {
	case r == wire.OK:
		at := off + wire.LRHLen
		if lrh.LNH == wire.LNHGlobal {
			p.add(GRH, at, wire.GRHLen)
			p.Src, p.Dst = addr(p.RoCE.Src), addr(p.RoCE.Dst)
			at += wire.GRHLen
		}
		d.transport(at, p)
	case r == wire.NotRoCE, r == wire.BadGRH:
		d.raw(lrh, off, p)
	default:
		p.add(Other, off+wire.LRHLen, len(p.left(off+wire.LRHLen)))
	}
}

// raw reads a native packet that has no BTH.
func (d *Dissector) raw(lrh wire.LRH, off int, p *Packet) {
	b := p.left(off)
	r := p.Encap.DecodeNative(b, nil)
	at := off + wire.LRHLen
	switch lrh.LNH {
	case wire.LNHRaw:
		p.add(RWH, at, min(wire.RWHLen, len(p.left(at))))
		at += wire.RWHLen
	case wire.LNHGlobal:
		p.add(GRH, at, min(wire.GRHLen, len(p.left(at))))
		at += wire.GRHLen
	}
	p.Around = false
	switch r {
	case encap.OK:
		p.IsEncap = true
		p.VCRC = Good
		d.inside(at, p)
		p.add(VCRC, off+4*int(lrh.PktLen), wire.VCRCLen)
	case encap.BadVCRC:
		p.VCRC = Bad
		p.add(Other, at, len(p.left(at)))
	default:
		p.add(Other, at, len(p.left(at)))
	}
}

// inside reads the datagram of p.Encap, which begins at an offset.
func (d *Dissector) inside(at int, p *Packet) {
	if !p.Encap.Segment.Whole() {
		p.add(Other, at, p.Encap.Len())
		return
	}
	p.Tunnel = true
	// What is inside may be another packet of RoCE: that is the one that is looked at.
	data, length, lacks := p.Data, p.Length, p.lacks
	end := min(at+p.Encap.Len(), len(data))
	p.Data, p.Length, p.lacks = data[:end], end, 0
	d.enclosed = true
	switch p.Encap.Kind {
	case encap.Ethernet:
		d.ethernet(at, p)
	case encap.IPv4, encap.IPv6:
		d.ip(at, p)
	default:
		p.add(ARP, at, end-min(at, end))
	}
	p.Data, p.Length, p.lacks = data, length, lacks
	d.enclosed = false
}

// transport notes the parts of a packet from its BTH on, and looks into its payload.
func (d *Dissector) transport(off int, p *Packet) {
	w := &p.RoCE
	p.IsRoCE = true
	p.add(BTH, off, wire.BTHLen)
	at := off + wire.BTHLen
	if n := int(w.Spec.HeaderLen); n > 0 {
		p.add(Extended, at, n)
		at += n
	}
	n := w.PayloadLen() + int(w.BTH.PadCnt)
	if n > 0 {
		p.add(Payload, at, min(n, len(p.left(at))))
	}
	at += n
	switch {
	case p.Snapped:
		p.ICRC = Cut
		return
	case w.VerifyICRC():
		p.ICRC = Good
	default:
		p.ICRC = Bad
	}
	p.add(ICRC, at, wire.ICRCLen)
	at += wire.ICRCLen
	if w.Framing == wire.FramingNative || w.Framing == wire.FramingNativeGRH {
		if w.VerifyVCRC() {
			p.VCRC = Good
		} else if len(p.left(at)) >= wire.VCRCLen {
			p.VCRC = Bad
		}
		if p.VCRC != NoCRC {
			p.add(VCRC, at, wire.VCRCLen)
		}
	}
	if p.ICRC == Good {
		d.payload(p)
	}
}

// said are the classes of packets that messages are said with.
const said = wire.ClassRequest | wire.ClassRead

// payload looks into the payload of a packet that came whole.
func (d *Dissector) payload(p *Packet) {
	w := &p.RoCE
	if w.BTH.Opcode == wire.UDSendOnly && w.BTH.DestQP == managerQP {
		h, err := cm.ParseHeader(w.Payload)
		if err == nil && len(w.Payload) >= cm.MADLen {
			p.IsManager, p.Manager, p.MAD = true, h, w.Payload
		}
	}
	if d.HeadersOnly {
		return
	}
	// Of answers only those to a READ say something.
	if p.IsManager || w.Spec.Service == wire.ServiceRC && w.Spec.Class&said != 0 {
		p.IsMessage = d.messages.Decode(w, &p.Message)
	}
	if p.IsMessage || p.IsManager || !w.Spec.Is(wire.ClassSend|wire.ClassOnly) {
		return
	}
	for _, f := range [...]encap.Format{encap.IPoIB, encap.EoIB, encap.VNIC} {
		if p.Encap.Decode(f, w.Payload) == encap.OK && plausible(&p.Encap) {
			p.IsEncap = true
			return
		}
	}
}

// plausible reports whether a payload that can be read as a datagram probably is one: it says of
// itself what it is for the second time.
func plausible(e *encap.Packet) bool {
	b := e.Datagram
	if !e.Segment.Whole() {
		return false
	}
	switch e.Kind {
	case encap.IPv4:
		return len(b) >= ipv4Len && int(b[2])<<8|int(b[3]) == len(b)
	case encap.IPv6:
		return len(b) >= ipv6Len && int(b[4])<<8|int(b[5]) == len(b)-ipv6Len
	case encap.Ethernet:
		if len(b) < ethernetLen {
			return false
		}
		switch t := uint16(b[12])<<8 | uint16(b[13]); t {
		case etherIPv4, etherIPv6, etherARP, etherVLAN, etherQinQ, etherRoCEv1:
			return true
		}
		return false
	}
	return len(b) >= 28 && b[0] == 0 // ARP
}
