package engine

import (
	"crypto/rand"
	"encoding/binary"
	"sync"
)

// cryptoRand is a roce.Rand over the system's random numbers, read in blocks.
type cryptoRand struct {
	mu   sync.Mutex
	buf  [256]byte
	left int // unused bytes at the end of buf
}

func newCryptoRand() *cryptoRand { return new(cryptoRand) }

// Uint64 returns 64 unpredictable bits. It is safe for concurrent use.
func (r *cryptoRand) Uint64() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == 0 {
		// crypto/rand.Read never fails: it ends the program instead.
		_, _ = rand.Read(r.buf[:])
		r.left = len(r.buf)
	}
	v := binary.LittleEndian.Uint64(r.buf[len(r.buf)-r.left:])
	r.left -= 8
	return v
}
