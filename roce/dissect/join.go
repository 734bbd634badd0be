package dissect

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// fragmentV4 reads a fragment that has an IPv4 header of n bytes.
func (d *Dissector) fragmentV4(net, n int, p *Packet) {
	b := p.left(net)
	field := binary.BigEndian.Uint16(b[6:])
	f := part{
		src: p.Src, dst: p.Dst, id: uint32(binary.BigEndian.Uint16(b[4:])),
		offset: int(field&ipv4Offset) * fragmentUnit, more: field&ipv4More != 0, header: b[:n],
	}
	end := int(binary.BigEndian.Uint16(b[2:]))
	sound := end >= n && headerSum(b[:n]) == 0xffff
	d.fragment(&f, b[9], net, n, end, sound, p)
}

// fragmentV6 reads a fragment whose header of IPv6 is at an offset; next is where in the headers
// before it that is named.
func (d *Dissector) fragmentV6(net, at, next int, p *Packet) {
	b := p.left(net)
	ext := b[at-net:]
	field := binary.BigEndian.Uint16(ext[2:])
	f := part{
		src: p.Src, dst: p.Dst, id: binary.BigEndian.Uint32(ext[4:]),
		offset: int(field & ipv6OffOffset), more: field&ipv6More != 0,
		header: b[:at-net], next: next - net,
	}
	n := at - net + ipv6FragLen
	end := ipv6Len + int(binary.BigEndian.Uint16(b[4:]))
	d.fragment(&f, ext[0], net, n, end, end >= n, p)
}

// fragment looks at a fragment whose header is at an offset, and whose data are from begin to end
// behind that, as it says of itself. With the last one that was missing the whole datagram is
// looked at.
func (d *Dissector) fragment(f *part, proto byte, net, begin, end int, sound bool, p *Packet) {
	b := p.left(net)
	at := net + begin
	p.Fragment, p.Refused, p.Joining = true, wire.Fragment, Alone
	var g *datagram
	switch {
	case proto != protoUDP || d.enclosed:
	case !sound:
		p.Joining = Impossible
		p.Around = p.Around || f.offset == 0 && portOf(b[begin:]) == wire.UDPPort
	case end > len(b): // of which nothing can be said but the port
		p.Around = p.Around || f.offset == 0 && portOf(b[begin:]) == wire.UDPPort
	default:
		f.data = b[begin:end]
		g, p.Joining = d.fragments.add(d.Now, f)
		p.Around = p.Around || g.port() == wire.UDPPort
	}
	if p.Joining != Joined {
		p.add(Other, at, len(b)-begin)
		return
	}
	d.fragments.restore(g)
	d.fragments.frame = append(append(d.fragments.frame[:0], p.Data[:at]...), g.data...)
	p.Data, p.lacks, p.Fragments = d.fragments.frame, 0, g.count
	// Of what a tunnel had to cut, the packet inside is no fragment.
	p.Fragment, p.Refused = g.port() == wire.UDPPort, wire.NotRoCE
	p.joinedAt, p.joinedV6 = at, g.header[0]>>4 == 6
	t := uint16(etherIPv4)
	if p.joinedV6 {
		t = etherIPv6
	}
	d.protocol(protoUDP, t, net, at, p)
}

// portOf is the destination port of a UDP header, 0 where there is none.
func portOf(b []byte) uint16 {
	if len(b) < udpLen {
		return 0
	}
	return binary.BigEndian.Uint16(b[2:])
}
