package campaign

import "encoding/binary"

// A Pattern makes bytes that follow from its value: two that begin differently share no eight
// bytes in a row but by chance.
type Pattern uint64

// next moves to the next eight bytes.
func (p Pattern) next() Pattern {
	p = p*6364136223846793005 + 1442695040888963407
	return p ^ p>>29
}

// Fill writes it.
func (p Pattern) Fill(dst []byte) {
	for len(dst) >= 8 {
		binary.LittleEndian.PutUint64(dst, uint64(p))
		dst = dst[8:]
		p = p.next()
	}
	for i := range dst {
		dst[i] = byte(p >> (8 * i))
	}
}

// Fills reports whether bytes hold its beginning.
func (p Pattern) Fills(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b) != uint64(p) {
			return false
		}
		b = b[8:]
		p = p.next()
	}
	for i := range b {
		if b[i] != byte(p>>(8*i)) {
			return false
		}
	}
	return true
}
