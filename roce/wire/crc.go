package wire

import (
	"encoding/binary"
	"hash/crc32"
)

// slicing is the table of a CRC-32 that takes eight bytes a step: slicing[k][b]
// is the CRC of byte b followed by k zero bytes.
var slicing = buildSlicing()

func buildSlicing() (t [8]crc32.Table) {
	t[0] = *crc32.IEEETable
	for k := 1; k < len(t); k++ {
		for b, v := range t[k-1] {
			t[k][b] = t[0][byte(v)] ^ v>>8
		}
	}
	return t
}

// slice8 moves the register over eight bytes: w is the bytes, first byte lowest,
// xor the register.
func slice8(w uint64) uint32 {
	return slicing[7][byte(w)] ^ slicing[6][byte(w>>8)] ^
		slicing[5][byte(w>>16)] ^ slicing[4][byte(w>>24)] ^
		slicing[3][byte(w>>32)] ^ slicing[2][byte(w>>40)] ^
		slicing[1][byte(w>>48)] ^ slicing[0][byte(w>>56)]
}

// slice4 moves the register over four bytes.
func slice4(w uint32) uint32 {
	return slicing[3][byte(w)] ^ slicing[2][byte(w>>8)] ^
		slicing[1][byte(w>>16)] ^ slicing[0][byte(w>>24)]
}

// updateShort is crc32.Update with the IEEE polynomial for less than what
// hash/crc32 is fast for.
func updateShort(crc uint32, p []byte) uint32 {
	crc = ^crc
	for len(p) >= 8 {
		crc = slice8(binary.LittleEndian.Uint64(p) ^ uint64(crc))
		p = p[8:]
	}
	if len(p) >= 4 {
		crc = slice4(binary.LittleEndian.Uint32(p) ^ crc)
		p = p[4:]
	}
	for _, b := range p {
		crc = slicing[0][byte(crc)^b] ^ crc>>8
	}
	return ^crc
}
