package inner

import "encoding/binary"

// Marks of congestion in the low two bits of a traffic class (RFC 3168).
const (
	NotECT  = 0
	ECT1    = 1
	ECT0    = 2
	CE      = 3
	ecnMask = 3
)

// TClass is the traffic class of an IP packet, DSCP and ECN: what the headers of the tunnel are
// to have (RFC 6040 4.1, normal mode; RFC 2983, uniform model). It is 0 of what is not IP.
func (h *Headers) TClass(b []byte) uint8 {
	switch h.Version {
	case 4:
		return b[h.L3+1]
	case 6:
		return b[h.L3]<<4 | b[h.L3+1]>>4
	}
	return 0
}

// decapsulated is what becomes of the ECN field of a packet, by its own and then by that of the
// headers that were around it (RFC 6040 4.2, figure 4); lost is a packet that is dropped.
const lost = 0xff

var decapsulated = [4][4]uint8{
	NotECT: {NotECT: NotECT, ECT1: NotECT, ECT0: NotECT, CE: lost},
	ECT1:   {NotECT: ECT1, ECT1: ECT1, ECT0: ECT1, CE: CE},
	ECT0:   {NotECT: ECT0, ECT1: ECT1, ECT0: ECT0, CE: CE},
	CE:     {NotECT: CE, ECT1: CE, ECT0: CE, CE: CE},
}

// Decapsulate gives a packet the mark that it got on its way in headers with traffic class
// outer. It reports false when the packet is to be dropped: it was marked, and its sender would
// not understand. The DSCP stays that of the packet.
func (h *Headers) Decapsulate(b []byte, outer uint8) bool {
	if h.Version == 0 {
		return true
	}
	old := h.TClass(b)
	ecn := decapsulated[old&ecnMask][outer&ecnMask]
	if ecn == lost {
		return false
	}
	h.setTClass(b, old&^ecnMask|ecn)
	return true
}

// setTClass changes the traffic class, with the checksum of IPv4.
func (h *Headers) setTClass(b []byte, class uint8) {
	ip := b[h.L3:]
	if h.Version == 6 {
		ip[0] = ip[0]&0xf0 | class>>4
		ip[1] = ip[1]&0x0f | class<<4
		return
	}
	old := binary.BigEndian.Uint16(ip)
	ip[1] = class
	check := update(binary.BigEndian.Uint16(ip[10:]), old, binary.BigEndian.Uint16(ip))
	binary.BigEndian.PutUint16(ip[10:], check)
}
