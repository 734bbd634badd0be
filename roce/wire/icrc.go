package wire

import "encoding/binary"

// ICRCLen is the length of the invariant CRC in bytes.
const ICRCLen = 4

// The ICRC reads the fields that routers and switches may change as ones, and the
// eight bytes in the place of the LRH too (IBA A17.3.3, 7.8.1). Masked in full are
//
//	IPv4      TOS, TTL, header checksum
//	IPv6, GRH traffic class, flow label, hop limit
//	UDP       checksum
//	LRH       VL, or everything when a GRH follows
//	BTH       FECN, BECN and the reserved bits beside them
//
// The register over the network header takes all bytes but its last four, and
// these xored to it: crcBTH goes on from there in one step of sixteen bytes.

const (
	icrcInit = 0xffffffff // register of a CRC over nothing
	icrcSeed = 0xDEBB20E3 // register behind the eight bytes of ones
	udpMask  = 0xffff0000 // checksum, in the last word of a UDP header, first byte lowest
)

// icrcIPv4 is the register that the masked bytes of an IPv4 header leave behind
// its first 24 bytes, with what lies before it.
var icrcIPv4 = icrcIPv4Mask()

func icrcIPv4Mask() uint32 {
	return crcUpdate(icrcSeed, []byte{
		1: 0xff, 8: 0xff, 10: 0xff, 11: 0xff, ipv4Len + 3: 0,
	})
}

// ICRC computes the invariant CRC (IBA 7.8.1, A17.3.3) of a packet that lies in
// head and tail: from the network header (IPv4, IPv6, GRH, or the LRH of a
// native packet) through the padding, without the ICRC itself. Everything up to
// the end of the BTH must lie in head; else, and for FramingNone, the result is
// 0 and means nothing. It goes on the wire least significant byte first.
//
// It is the CRC-32 of Ethernet over the packet, in which the fields that routers
// and switches may change are read as ones.
func ICRC(f Framing, head, tail []byte) uint32 {
	n := f.netLen()
	if n == 0 || len(head) < n+BTHLen {
		return 0
	}
	reg := crcBTH(icrcNet(f, head[:n]), (*[BTHLen]byte)(head[n:]))
	reg = crcUpdate(reg, head[n+BTHLen:])
	if len(tail) != 0 {
		reg = crcUpdate(reg, tail)
	}
	return ^reg
}

// icrcNet is the register over the network header h of any framing.
func icrcNet(f Framing, h []byte) uint32 {
	switch f {
	case FramingV2IPv4:
		return icrcNetIPv4((*[ipv4Len + udpLen]byte)(h))
	case FramingV2IPv6:
		reg := icrcRoute((*[GRHLen]byte)(h))
		udp := (*[udpLen]byte)(h[ipv6Len:])
		reg = crc4(crc4(reg) ^ binary.LittleEndian.Uint32(udp[:]))
		return reg ^ (binary.LittleEndian.Uint32(udp[4:]) | udpMask)
	case FramingV1:
		return icrcRoute((*[GRHLen]byte)(h))
	case FramingNative:
		reg := uint32(icrcInit) ^ (binary.LittleEndian.Uint32(h) | 0xf0)
		return crc4(reg) ^ binary.LittleEndian.Uint32(h[4:])
	case FramingNativeGRH:
		return icrcRoute((*[GRHLen]byte)(h[LRHLen:]))
	default:
		return 0
	}
}

// icrcNetIPv4 is icrcNet for IPv4 and UDP. The bytes do not wait for each other.
func icrcNetIPv4(h *[ipv4Len + udpLen]byte) uint32 {
	t := slicing
	reg := icrcIPv4 ^ t[23][h[0]] ^ // 1 is TOS
		t[21][h[2]] ^ t[20][h[3]] ^ t[19][h[4]] ^ t[18][h[5]] ^
		t[17][h[6]] ^ t[16][h[7]] ^ t[14][h[9]] ^ // 8 is TTL, 10 and 11 are the checksum
		t[11][h[12]] ^ t[10][h[13]] ^ t[9][h[14]] ^ t[8][h[15]] ^
		t[7][h[16]] ^ t[6][h[17]] ^ t[5][h[18]] ^ t[4][h[19]] ^
		t[3][h[20]] ^ t[2][h[21]] ^ t[1][h[22]] ^ t[0][h[23]]
	return reg ^ (binary.LittleEndian.Uint32(h[ipv4Len+4:]) | udpMask)
}

// icrcRoute is the register over an IPv6 header or GRH.
func icrcRoute(h *[GRHLen]byte) uint32 {
	reg := uint32(icrcSeed) ^ (binary.LittleEndian.Uint32(h[:]) | 0xffffff0f)
	reg = crc4(reg) ^ (binary.LittleEndian.Uint32(h[grhOffPayLen:]) | 0xff000000)
	reg = crc16(reg, (*[12]byte)(h[8:]))
	reg ^= binary.LittleEndian.Uint32(h[20:])
	reg = crc16(reg, (*[12]byte)(h[24:]))
	return reg ^ binary.LittleEndian.Uint32(h[36:])
}

// crcBTH moves the register of the network header over its last four bytes and
// the BTH.
func crcBTH(reg uint32, b *[BTHLen]byte) uint32 {
	t := slicing
	return t[11][b[0]] ^ t[10][b[1]] ^ t[9][b[2]] ^ t[8][b[3]] ^
		t[7][0xff] ^ t[6][b[5]] ^ t[5][b[6]] ^ t[4][b[7]] ^
		t[3][b[8]] ^ t[2][b[9]] ^ t[1][b[10]] ^ t[0][b[11]] ^
		(t[15][byte(reg)] ^ t[14][byte(reg>>8)]) ^ (t[13][byte(reg>>16)] ^ t[12][byte(reg>>24)])
}
