package match

import "math/bits"

// A seed is the key of the hash, secret from peers.
type seed [2]uint64

// hash is SipHash-1-3 (Aumasson and Bernstein, 2012, with one round a word and three at
// the end) of 16 bytes: the scope, then the tag, both little-endian. The kernel has the
// same as hsiphash on machines of 64 bits (lib/siphash.c of Linux 6.12).
func (s *seed) hash(k key) uint64 {
	const length = 16
	v0 := s[0] ^ 0x736f6d6570736575
	v1 := s[1] ^ 0x646f72616e646f6d
	v2 := s[0] ^ 0x6c7967656e657261
	v3 := s[1] ^ 0x7465646279746573

	v3 ^= k.scope
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= k.scope
	v3 ^= k.tag
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= k.tag
	v3 ^= length << 56
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0 ^= length << 56
	v2 ^= 0xff
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	return v0 ^ v1 ^ v2 ^ v3
}

// sipRound is one round of SipHash. It is small enough to be inlined.
func sipRound(v0, v1, v2, v3 uint64) (_, _, _, _ uint64) {
	v0 += v1
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v0 = bits.RotateLeft64(v0, 32)
	v2 += v3
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 += v3
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v2 += v1
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	v2 = bits.RotateLeft64(v2, 32)
	return v0, v1, v2, v3
}
