package trial

import "encoding/binary"

// fill writes the pattern of a key: the key itself, then numbers that follow
// from it. Two keys share no eight bytes in a row but by chance.
func fill(dst []byte, key uint64) {
	x := key
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

// messageKey is the key of the payload of a message: it tells whose it is.
func messageKey(conn, side int, id uint64) uint64 {
	return uint64(conn+1)<<56 | uint64(side+1)<<48 | id&(1<<48-1)
}

// idleKey is the key of memory that nobody uses.
func idleKey(n uint64) uint64 { return 0xee<<56 | n&(1<<56-1) }
