package cm

// max24 is the largest QP number and PSN.
const max24 = 1<<24 - 1

// uint24 reads 24 bits.
func uint24(b []byte) uint32 {
	_ = b[2]
	return uint32(b[0])<<16 | uint32(b[1])<<8 | uint32(b[2])
}

// putUint24 writes the low 24 bits of v.
func putUint24(b []byte, v uint32) {
	_ = b[2]
	b[0], b[1], b[2] = byte(v>>16), byte(v>>8), byte(v)
}

// bit turns a flag into the given bit.
func bit(on bool, b byte) byte {
	if on {
		return b
	}
	return 0
}
