package wire

import "hash/crc32"

// ICRCLen is the length of the invariant CRC in bytes.
const ICRCLen = 4

// icrcSeed is the CRC-32 of the eight 0xFF bytes that stand in the place of the
// LRH in RoCE packets (IBA A17.3.3).
const icrcSeed = 0x2144DF1C

const (
	// maxInvariant is the longest run that the ICRC covers through a mask:
	// LRH, GRH and BTH.
	maxInvariant = LRHLen + GRHLen + BTHLen

	// crcBlock is what the carry-less multiplication behind hash/crc32 takes
	// in one step, and crcWorth from how many bytes on it is used. Bytes that
	// do not fill a block cost it several times as much as others.
	crcBlock = 16
	crcWorth = 64
)

// ICRC computes the invariant CRC (IBA 7.8.1, A17.3.3) of a packet that lies in
// head and tail: from the network header (IPv4, IPv6, GRH, or the LRH of a
// native packet) through the padding, without the ICRC itself. Everything up to
// the end of the BTH must lie in head; else, and for FramingNone, the result is
// 0 and means nothing. It goes on the wire least significant byte first.
//
// It is the CRC-32 of Ethernet over a copy of the packet in which the fields
// that routers and switches may change are all ones.
func ICRC(f Framing, head, tail []byte) uint32 {
	n := f.netLen() + BTHLen
	if n == BTHLen || len(head) < n {
		return 0
	}
	if rest := len(head) - n; rest < crcWorth {
		n = min(len(head), maxInvariant)
	} else {
		n += rest % crcBlock
	}
	crc := icrcHeader(f, head[:n])
	crc = updateCRC(crc, head[n:])
	return updateCRC(crc, tail)
}

// updateCRC is crc32.Update with the IEEE polynomial, fast for short p too.
func updateCRC(crc uint32, p []byte) uint32 {
	if len(p) < crcWorth {
		return updateShort(crc, p)
	}
	return crc32.Update(crc, crc32.IEEETable, p)
}

// icrcHeader is the CRC of h, which begins with the network header and the BTH
// and is not longer than maxInvariant and a block, with its mask applied.
func icrcHeader(f Framing, h []byte) uint32 {
	var m [maxInvariant + crcBlock]byte
	n := copy(m[:], h)
	maskInvariant(f, m[:n])
	if f == FramingNative || f == FramingNativeGRH {
		return updateShort(0, m[:n])
	}
	return updateShort(icrcSeed, m[:n])
}

// maskInvariant sets to ones what the ICRC does not protect. m begins with the
// network header and the BTH.
func maskInvariant(f Framing, m []byte) {
	const ones = 0xff
	m[f.netLen()+bthOffECN] = ones
	switch f {
	case FramingV2IPv4:
		m[1] = ones               // TOS
		m[8] = ones               // TTL
		m[10], m[11] = ones, ones // header checksum
		m[26], m[27] = ones, ones // UDP checksum
	case FramingV2IPv6:
		maskRoute(m)
		m[46], m[47] = ones, ones // UDP checksum
	case FramingV1:
		maskRoute(m)
	case FramingNative:
		m[0] |= 0xf0 // VL
	case FramingNativeGRH:
		for i := range LRHLen {
			m[i] = ones
		}
		maskRoute(m[LRHLen:])
	}
}

// maskRoute masks an IPv6 header or GRH: all of the first word but the version,
// and the hop limit.
func maskRoute(m []byte) {
	const ones = 0xff
	m[0] |= 0x0f
	m[1], m[2], m[3] = ones, ones, ones
	m[grhOffHopLmt] = ones
}
