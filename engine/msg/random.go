package msg

import (
	"crypto/rand"
	"encoding/binary"
)

// random draws from the machine's source of unpredictable bits.
type random struct{}

func (random) Uint64() uint64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return binary.NativeEndian.Uint64(b[:])
}
