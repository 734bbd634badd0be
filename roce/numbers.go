package roce

import "xroce/roce/internal/handle"

// A NumberTable maps unpredictable numbers, as QPNs and SRQ numbers are, to objects:
// a peer that can guess a number can aim at an object that it was never told of. A
// number that was given back is not drawn again for a long time. Lookup takes no lock
// and is safe for concurrent use with everything; Insert and Delete exclude each other.
type NumberTable[T any] = handle.Table[T]

// NewNumberTable returns an empty table of the numbers minNum to maxNum, both included,
// which it draws from rand.
func NewNumberTable[T any](minNum, maxNum uint32, rand Rand) *NumberTable[T] {
	return handle.New[T](minNum, maxNum, rand)
}

// A Rand is a source of 64 random bits at a time, in the shape of math/rand/v2.Source. It
// must be unpredictable where a peer is not trusted, and safe for concurrent use when
// more than one table draws from it.
type Rand = handle.Rand

// ErrNumbersFull says that every number of a table is in use.
var ErrNumbersFull = handle.ErrFull
