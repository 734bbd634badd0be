package trial

import (
	"encoding/binary"
	"sync"
)

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

// noise is where the patterns of memory that nobody uses are cut from: twice as
// long as the largest slot. It never changes.
var noise = sync.OnceValue(func() []byte {
	b := make([]byte, 256<<10)
	fill(b, 0xee<<56)
	return b
})

// rest writes the n-th pattern of memory that nobody uses. Each begins at
// another place of the noise, so two of them differ nearly everywhere.
func rest(dst []byte, n uint64) {
	all := noise()
	copy(dst, all[n*8191%uint64(len(all)-len(dst)):])
}
