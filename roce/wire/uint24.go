package wire

// max24 is the largest value of the 24-bit fields: QP numbers, PSNs, MSNs.
const max24 = 1<<24 - 1

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
