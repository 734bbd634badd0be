package dissect

import (
	"encoding/binary"

	"xroce/roce/clock"
	msgdissect "xroce/roce/msg/dissect"
	"xroce/roce/wire"
)

// A Dissector remembers what it takes to read the next packet of a capture. The zero value is
// ready for the first.
type Dissector struct {
	// Now is when the next packet was there, to be set before it is dissected: fragments that are
	// older than FragmentLife are forgotten. Without it none is, but for others.
	Now clock.Time

	// HeadersOnly says that nobody asks what a good packet carries, but for the connection manager:
	// IsMessage and IsEncap stay false where a payload would have to be looked into for them.
	HeadersOnly bool

	messages  msgdissect.Decoder
	fragments assembler
	enclosed  bool // inside of a datagram of package encap
}

// Numbers of protocols.
const (
	etherIPv4    = 0x0800
	etherARP     = 0x0806
	etherVLAN    = 0x8100
	etherQinQ    = 0x88a8
	etherQinQOld = 0x9100
	etherIPv6    = 0x86dd
	etherTEB     = 0x6558
	etherERSPAN2 = 0x88be
	etherERSPAN3 = 0x22eb
	etherMinType = 0x0600 // below it is a length
)

// Lengths of headers in bytes.
const (
	ethernetLen = 14
	vlanLen     = 4
	cookedLen   = 16
	cooked2Len  = 20
	nullLen     = 4
	erfLen      = 16
)

// Dissect looks into a packet of which data was kept and which had length bytes on the wire. It
// never fails: what cannot be read stays bytes, and p says how far it came. p is valid as long as
// data is, until the next Dissect.
func (d *Dissector) Dissect(link Link, data []byte, length int, p *Packet) {
	p.reset(link, data, length)
	if link == LinkEthernet && d.plain(p) {
		return
	}
	d.link(link, 0, p)
	if p.count == 0 {
		p.add(Other, 0, len(data))
	}
}

// link reads the header of a link type.
func (d *Dissector) link(link Link, off int, p *Packet) {
	b := p.left(off)
	switch link {
	case LinkEthernet:
		d.ethernet(off, p)
	case LinkRaw, LinkIPv4, LinkIPv6:
		d.ip(off, p)
	case LinkNull:
		if len(b) >= nullLen {
			p.add(Null, off, nullLen)
			d.ip(off+nullLen, p)
		}
	case LinkCooked:
		if len(b) >= cookedLen {
			p.add(Cooked, off, cookedLen)
			copy(p.SrcMAC[:], b[6:12])
			d.etherType(binary.BigEndian.Uint16(b[14:]), off+cookedLen, p)
		}
	case LinkCooked2:
		if len(b) >= cooked2Len {
			p.add(Cooked2, off, cooked2Len)
			copy(p.SrcMAC[:], b[12:18])
			d.etherType(binary.BigEndian.Uint16(b), off+cooked2Len, p)
		}
	case LinkInfiniBand, LinkUser0:
		d.native(off, p)
	case LinkERF:
		d.erf(off, p)
	default:
		p.add(Other, off, len(b))
	}
}

// erf reads the header of a record of Endace and the headers behind it.
func (d *Dissector) erf(off int, p *Packet) {
	const (
		ethernet, infiniBand, ipv4, ipv6 = 2, 21, 22, 23
		ethernetColor, ethernetDSM       = 11, 16
		ethernetDSMColor                 = 20
		more, typeMask                   = 0x80, 0x7f
		ethernetPad                      = 2 // offset and padding before a frame
		extensionLen                     = 8
	)
	b := p.left(off)
	if len(b) < erfLen {
		return
	}
	kind := b[8]
	n := erfLen
	for ext := kind; ext&more != 0; n += extensionLen {
		if len(b) < n+extensionLen {
			p.add(ERF, off, len(b))
			return
		}
		ext = b[n]
	}
	switch kind & typeMask {
	case ethernet, ethernetColor, ethernetDSM, ethernetDSMColor:
		p.add(ERF, off, n+ethernetPad)
		d.ethernet(off+n+ethernetPad, p)
	case infiniBand:
		p.add(ERF, off, n)
		d.native(off+n, p)
	case ipv4, ipv6:
		p.add(ERF, off, n)
		d.ip(off+n, p)
	default:
		p.add(ERF, off, n)
		p.add(Other, off+n, len(b)-min(n, len(b)))
	}
}

// ethernet reads a frame.
func (d *Dissector) ethernet(off int, p *Packet) {
	b := p.left(off)
	if len(b) < ethernetLen || p.full() {
		p.add(Other, off, len(b))
		return
	}
	p.add(Ethernet, off, ethernetLen)
	copy(p.DstMAC[:], b)
	copy(p.SrcMAC[:], b[6:])
	d.etherType(binary.BigEndian.Uint16(b[12:]), off+ethernetLen, p)
}

// etherType reads what is behind an EtherType.
func (d *Dissector) etherType(t uint16, off int, p *Packet) {
	p.etherType = t
	for t == etherVLAN || t == etherQinQ || t == etherQinQOld {
		b := p.left(off)
		if len(b) < vlanLen || p.full() {
			p.add(Other, off, len(b))
			return
		}
		kind := VLAN
		if t == etherQinQ {
			kind = ServiceVLAN
		}
		p.add(kind, off, vlanLen)
		t = binary.BigEndian.Uint16(b[2:])
		p.etherType = t
		off += vlanLen
	}
	if p.full() {
		p.add(Other, off, len(p.left(off)))
		return
	}
	switch t {
	case etherIPv4, etherIPv6:
		d.ip(off, p)
	case etherRoCEv1:
		p.Around = true
		d.roce(t, off, off+wire.GRHLen, p)
	case etherNative:
		p.add(Native, off, 0)
		d.native(off, p)
	case etherARP:
		p.add(ARP, off, len(p.left(off)))
	case etherTEB:
		d.ethernet(off, p)
	default:
		p.add(Other, off, len(p.left(off)))
	}
}
