package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// The CRC-32 of the ICRC in pieces. Everything here works on the register of the
// CRC: all ones at the start, inverted at the end. The register is linear in it
// and in the bytes, so what is known beforehand (masks, a path) is one constant,
// and the bytes that change are looked up and xored to it in any order.

// crcTables is the number of tables: the farthest lookup is that of the length in
// an IPv6 header, see [Template.Seal].
const crcTables = 40

// slicing is the table of a CRC-32 that takes many bytes a step: slicing[k][b] is
// the register that byte b leaves behind itself and k zero bytes. Of the tables
// from 16 on only the lines of header bytes are ever in use. It is a pointer so
// that all lookups share one base register.
var slicing = buildSlicing()

func buildSlicing() *[crcTables]crc32.Table {
	t := new([crcTables]crc32.Table)
	t[0] = *crc32.IEEETable
	for k := 1; k < len(t); k++ {
		for b, v := range t[k-1] {
			t[k][b] = t[0][byte(v)] ^ v>>8
		}
	}
	return t
}

// crc4 moves the register over four bytes. reg is the register xor these, first
// byte lowest.
func crc4(reg uint32) uint32 {
	t := slicing
	return t[3][byte(reg)] ^ t[2][byte(reg>>8)] ^ t[1][byte(reg>>16)] ^ t[0][byte(reg>>24)]
}

// crc16 moves the register over sixteen bytes: four that were xored to reg, first
// byte lowest, and b. Looking up bytes where they lie costs half of what it costs
// to load words and take them apart.
func crc16(reg uint32, b *[12]byte) uint32 {
	t := slicing
	return t[11][b[0]] ^ t[10][b[1]] ^ t[9][b[2]] ^ t[8][b[3]] ^
		t[7][b[4]] ^ t[6][b[5]] ^ t[5][b[6]] ^ t[4][b[7]] ^
		t[3][b[8]] ^ t[2][b[9]] ^ t[1][b[10]] ^ t[0][b[11]] ^
		(t[15][byte(reg)] ^ t[14][byte(reg>>8)]) ^ (t[13][byte(reg>>16)] ^ t[12][byte(reg>>24)])
}

const (
	// crcBlock is what hash/crc32 takes in one step where it has carry-less
	// multiplication (amd64). Bytes that do not fill a block cost it several
	// times as much as others.
	crcBlock = 16

	// crcWorth is from how many bytes on hash/crc32 is faster than tables; below
	// 64 it does not multiply at all.
	crcWorth = 96
)

// crcUpdate moves the register over p, fast for any length.
func crcUpdate(reg uint32, p []byte) uint32 {
	if len(p) >= crcWorth {
		return crcLong(reg, p)
	}
	t := slicing
	for len(p) >= 16 {
		b := (*[16]byte)(p)
		reg ^= binary.LittleEndian.Uint32(b[:])
		reg = t[11][b[4]] ^ t[10][b[5]] ^ t[9][b[6]] ^ t[8][b[7]] ^
			t[7][b[8]] ^ t[6][b[9]] ^ t[5][b[10]] ^ t[4][b[11]] ^
			t[3][b[12]] ^ t[2][b[13]] ^ t[1][b[14]] ^ t[0][b[15]] ^
			(t[15][byte(reg)] ^ t[14][byte(reg>>8)]) ^ (t[13][byte(reg>>16)] ^ t[12][byte(reg>>24)])
		p = p[16:]
	}
	for len(p) >= 4 {
		reg = crc4(reg ^ binary.LittleEndian.Uint32(p))
		p = p[4:]
	}
	for _, b := range p {
		reg = t[0][byte(reg)^b] ^ reg>>8
	}
	return reg
}

// crcLong is crcUpdate for what is worth it.
func crcLong(reg uint32, p []byte) uint32 {
	if odd := len(p) % crcBlock; odd != 0 {
		reg = crcUpdate(reg, p[:odd])
		p = p[odd:]
	}
	return ^crc32.Update(^reg, crc32.IEEETable, p)
}
