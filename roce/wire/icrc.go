package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// ICRCLen is the length of the invariant CRC in bytes.
const ICRCLen = 4

// icrcSeed is the CRC-32 of the eight 0xFF bytes that stand in the place of the
// LRH in RoCE packets (IBA A17.3.3).
const icrcSeed = 0x2144DF1C

// A mask is what the ICRC does not protect: ones over the bits that count as
// ones whatever they are, from the network header through the BTH. Its length is
// a multiple of 4.
type mask struct {
	n    int    // length in bytes, 0 for a framing without ICRC
	seed uint32 // CRC of what is taken to lie before
	ones [maxInvariant]byte
}

// maxInvariant is the longest run that is covered through a mask: LRH, GRH, BTH.
const maxInvariant = LRHLen + GRHLen + BTHLen

// masks is the table of IBA A17.3.3 and 7.8.1.
var masks = buildMasks()

func buildMasks() (t [numFramings]mask) {
	for f := FramingV2IPv4; int(f) < numFramings; f++ {
		m := &t[f]
		m.n = f.netLen() + BTHLen
		m.ones[f.netLen()+bthOffECN] = 0xff
		m.seed = icrcSeed
		switch f {
		case FramingV2IPv4:
			m.cover(0, 1, 8, 10, 11) // TOS, TTL, header checksum
			m.cover(ipv4Len, 6, 7)   // UDP checksum
		case FramingV2IPv6:
			m.coverRoute(0)
			m.cover(ipv6Len, 6, 7) // UDP checksum
		case FramingV1:
			m.coverRoute(0)
		case FramingNative:
			m.seed = 0
			m.ones[0] = 0xf0 // VL
		case FramingNativeGRH:
			m.seed = 0
			m.cover(0, 0, 1, 2, 3, 4, 5, 6, 7) // LRH
			m.coverRoute(LRHLen)
		}
	}
	return t
}

// cover masks the bytes at the given offsets from base.
func (m *mask) cover(base int, offsets ...int) {
	for _, off := range offsets {
		m.ones[base+off] = 0xff
	}
}

// coverRoute masks traffic class, flow label and hop limit of the IPv6 header or
// GRH at base; the version stays.
func (m *mask) coverRoute(base int) {
	m.ones[base] = 0x0f
	m.cover(base, 1, 2, 3, grhOffHopLmt)
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
	if int(f) >= len(masks) {
		return 0
	}
	m := &masks[f]
	if m.n == 0 || len(head) < m.n {
		return 0
	}
	crc := m.update(head[:m.n])
	crc = updateCRC(crc, head[m.n:])
	if len(tail) == 0 {
		return crc
	}
	return updateCRC(crc, tail)
}

// update is the CRC of the header h under the mask.
func (m *mask) update(h []byte) uint32 {
	crc := ^m.seed
	ones := m.ones[:len(h)]
	for len(h) >= 8 && len(ones) >= 8 {
		w := binary.LittleEndian.Uint64(h) | binary.LittleEndian.Uint64(ones)
		crc = slice8(w ^ uint64(crc))
		h, ones = h[8:], ones[8:]
	}
	if len(h) >= 4 && len(ones) >= 4 {
		w := binary.LittleEndian.Uint32(h) | binary.LittleEndian.Uint32(ones)
		crc = slice4(w ^ crc)
	}
	return ^crc
}

const (
	// crcBlock is what hash/crc32 takes in one step where it has carry-less
	// multiplication (amd64), and crcWorth from how many bytes on it uses that.
	// Bytes that do not fill a block cost it several times as much as others.
	crcBlock = 16
	crcWorth = 64
)

// updateCRC is crc32.Update with the IEEE polynomial, fast for any length.
func updateCRC(crc uint32, p []byte) uint32 {
	if len(p) < crcWorth {
		return updateShort(crc, p)
	}
	if odd := len(p) % crcBlock; odd != 0 {
		crc = updateShort(crc, p[:odd])
		p = p[odd:]
		if len(p) < crcWorth {
			return updateShort(crc, p)
		}
	}
	return crc32.Update(crc, crc32.IEEETable, p)
}
