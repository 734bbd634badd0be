package load

import "encoding/binary"

const (
	// ethernetLen is the length of an Ethernet header without a tag.
	ethernetLen = 14
	// headersLen is Ethernet, IPv4 and UDP.
	headersLen = ethernetLen + 20 + 8

	rocePort   = 4791  // UDP port of RoCEv2 (IBA annex A17.9)
	sourcePort = 49152 // first of the dynamic ports
)

// Header returns the first bytes of a frame of size bytes with the Ethernet, IPv4
// and UDP headers of a RoCEv2 packet, so that an XDP program that looks for
// RoCE finds what it looks for. src and dst are Ethernet addresses.
func Header(size int, dst, src [6]byte, from, to [4]byte) []byte {
	b := make([]byte, headersLen)
	copy(b, dst[:])
	copy(b[6:], src[:])
	binary.BigEndian.PutUint16(b[12:], 0x0800)

	ip := b[14:34]
	ip[0] = 0x45
	binary.BigEndian.PutUint16(ip[2:], uint16(size-14))
	ip[8] = 64 // time to live
	ip[9] = 17 // UDP
	copy(ip[12:], from[:])
	copy(ip[16:], to[:])
	binary.BigEndian.PutUint16(ip[10:], ^ones(ip))

	udp := b[34:42]
	binary.BigEndian.PutUint16(udp, sourcePort)
	binary.BigEndian.PutUint16(udp[2:], rocePort)
	binary.BigEndian.PutUint16(udp[4:], uint16(size-34))
	return b
}

// ones is the ones' complement sum of RFC 1071.
func ones(b []byte) uint16 {
	var sum uint32
	for i := 0; i+1 < len(b); i += 2 {
		sum += uint32(binary.BigEndian.Uint16(b[i:]))
	}
	for sum > 0xffff {
		sum = sum>>16 + sum&0xffff
	}
	return uint16(sum)
}

// reflect turns a frame round: its Ethernet and IPv4 addresses change places.
// The IPv4 checksum stays right, because it is a sum.
func reflect(b []byte) {
	var tmp [6]byte
	copy(tmp[:], b[:6])
	copy(b[:6], b[6:12])
	copy(b[6:12], tmp[:])
	copy(tmp[:4], b[26:30])
	copy(b[26:30], b[30:34])
	copy(b[30:34], tmp[:4])
}
