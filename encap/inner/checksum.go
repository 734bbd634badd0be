package inner

import (
	"encoding/binary"
	"math/bits"
)

// sum adds up b as the Internet checksum does (RFC 1071), on top of what was added before. The
// result is folded to 32 bits, and big-endian.
func sum(b []byte, before uint32) uint32 {
	total, carry := uint64(before), uint64(0)
	for ; len(b) >= 32; b = b[32:] {
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b), carry)
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b[8:]), carry)
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b[16:]), carry)
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b[24:]), carry)
	}
	for ; len(b) >= 8; b = b[8:] {
		total, carry = bits.Add64(total, binary.BigEndian.Uint64(b), carry)
	}
	total, carry = bits.Add64(total, carry, 0)
	total += carry
	folded := total>>32 + total&0xffffffff
	for ; len(b) >= 2; b = b[2:] {
		folded += uint64(binary.BigEndian.Uint16(b))
	}
	if len(b) == 1 {
		folded += uint64(b[0]) << 8
	}
	return uint32(folded>>32) + uint32(folded)
}

// fold makes a checksum of a sum, not yet complemented.
func fold(s uint32) uint16 {
	s = s>>16 + s&0xffff
	return uint16(s>>16 + s)
}

// Checksum is the Internet checksum of b (RFC 1071).
func Checksum(b []byte) uint16 { return ^fold(sum(b, 0)) }

// update corrects a checksum for a 16-bit word that has changed (RFC 1624).
func update(check, old, new uint16) uint16 {
	s := uint32(^check) + uint32(^old) + uint32(new)
	return ^fold(s)
}

// pseudo is the sum of the pseudo-header of a transport of n bytes.
func (h *Headers) pseudo(b []byte, n int) uint32 {
	ip := b[h.L3:]
	addresses := ip[12:20]
	if h.Version == 6 {
		addresses = ip[8:40]
	}
	return sum(addresses, uint32(n>>16)+uint32(n&0xffff)+uint32(h.Protocol))
}
