package dissect

import (
	"encoding/binary"
	"net/netip"

	"xroce/roce/wire"
)

// plain reads a packet of RoCE v2 over IPv4 with nothing around it, as nearly all are, in one go.
// It reports false for any other, also for one that is refused, of which it has noted nothing.
func (d *Dissector) plain(p *Packet) bool {
	const net, udp, bth = ethernetLen, ethernetLen + ipv4Len, ethernetLen + ipv4Len + udpLen
	if len(p.Data) < bth {
		return false
	}
	b := (*[bth]byte)(p.Data)
	if binary.BigEndian.Uint16(b[12:]) != etherIPv4 || b[net] != 0x45 ||
		binary.BigEndian.Uint16(b[udp+2:]) != wire.UDPPort ||
		p.RoCE.Decode(p.Data, nil) != wire.OK {
		return false
	}
	p.DstMAC, p.SrcMAC, p.etherType = [6]byte(b[:]), [6]byte(b[6:]), etherIPv4
	p.Src, p.Dst = netip.AddrFrom4([4]byte(b[net+12:])), netip.AddrFrom4([4]byte(b[net+16:]))
	p.SrcPort, p.DstPort = p.RoCE.SrcPort, wire.UDPPort
	p.Around, p.Refused = true, wire.OK
	p.layers[0] = Layer{Ethernet, 0, ethernetLen}
	p.layers[1] = Layer{IPv4, net, ipv4Len}
	p.layers[2] = Layer{UDP, udp, udpLen}
	p.count = 3
	d.transport(bth, p)
	return true
}
