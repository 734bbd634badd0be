package trial

import (
	"sync"

	"xroce/engine/sim/campaign"
)

// fill writes the pattern of a key: the key itself, then numbers that follow
// from it. Two keys share no eight bytes in a row but by chance.
func fill(dst []byte, key uint64) {
	campaign.Pattern(key).Fill(dst)
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
