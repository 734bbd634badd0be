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

// updateShort is crc32.Update with the IEEE polynomial for a few dozen bytes on
// the caller's stack. hash/crc32 calls its implementation through a variable,
// so the compiler would move a stack buffer passed to it to the heap.
func updateShort(crc uint32, p []byte) uint32 {
	crc = ^crc
	for len(p) >= 8 {
		lo := binary.LittleEndian.Uint32(p) ^ crc
		hi := binary.LittleEndian.Uint32(p[4:])
		crc = slicing[7][byte(lo)] ^ slicing[6][byte(lo>>8)] ^
			slicing[5][byte(lo>>16)] ^ slicing[4][byte(lo>>24)] ^
			slicing[3][byte(hi)] ^ slicing[2][byte(hi>>8)] ^
			slicing[1][byte(hi>>16)] ^ slicing[0][byte(hi>>24)]
		p = p[8:]
	}
	if len(p) >= 4 {
		lo := binary.LittleEndian.Uint32(p) ^ crc
		crc = slicing[3][byte(lo)] ^ slicing[2][byte(lo>>8)] ^
			slicing[1][byte(lo>>16)] ^ slicing[0][byte(lo>>24)]
		p = p[4:]
	}
	for _, b := range p {
		crc = slicing[0][byte(crc)^b] ^ crc>>8
	}
	return ^crc
}
