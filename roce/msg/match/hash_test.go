package match

import "testing"

// TestHashIsSipHash compares with SipHash-1-3 of others, of the bytes 0 to 15.
func TestHashIsSipHash(t *testing.T) {
	k := key{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	// test_vectors_hsiphash[16] of Linux lib/siphash_kunit.c, which has 32 bits of it.
	s := seed{0x0706050403020100, 0x0f0e0d0c0b0a0908}
	if got := uint32(s.hash(k)); got != 0x7d908b66 {
		t.Errorf("with the key of the kernel's test: %#x", got)
	}
	// hash(bytes(range(16))) of CPython 3.11 with PYTHONHASHSEED=0: the key is 0.
	s = seed{}
	if got := s.hash(k); got != 0x8972188433a5c5b7 {
		t.Errorf("with the key 0: %#x", got)
	}
}
