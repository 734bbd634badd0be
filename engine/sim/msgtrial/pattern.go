package msgtrial

import (
	"bytes"
	"encoding/binary"
)

// fill writes the pattern of a key: two keys share no eight bytes in a row but by chance.
func fill(dst []byte, key uint64) {
	x := (key + 1) * 0x9e3779b97f4a7c15
	for len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, x)
		dst = dst[8:]
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	for i := range dst {
		dst[i] = byte(x >> (8 * i))
	}
}

// filled reports whether bytes hold the beginning of the pattern of a key.
func filled(b []byte, key uint64) bool {
	x := (key + 1) * 0x9e3779b97f4a7c15
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != x {
			return false
		}
		b = b[8:]
		x = x*6364136223846793005 + 1442695040888963407
		x ^= x >> 29
	}
	for i := range b {
		if b[i] != byte(x>>(8*i)) {
			return false
		}
	}
	return true
}

// blank is what memory holds that nobody may write to.
const blank = 0xa5

// blanked reports whether bytes were not touched.
func blanked(b []byte) bool {
	return len(b) == 0 || b[0] == blank && bytes.Equal(b[1:], b[:len(b)-1])
}

// wipe makes memory such that nobody may write to it.
func wipe(b []byte) {
	if len(b) > 0 {
		b[0] = blank
	}
	for n := 1; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}
