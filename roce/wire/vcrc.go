package wire

import "encoding/binary"

// VCRCLen is the length of the variant CRC in bytes.
const VCRCLen = 2

// vcrcPoly is x^16 + x^12 + x^3 + x + 1 with the bits reversed.
const vcrcPoly = 0xD008

// vcrcSlices is how many bytes lookUpVCRC looks up at once.
const vcrcSlices = 16

// vcrcTables[k][b] is the register that byte b leaves behind itself and k zero bytes.
// It is a pointer so that all lookups share one base register.
var vcrcTables = buildVCRC()

func buildVCRC() *[vcrcSlices][256]uint16 {
	t := new([vcrcSlices][256]uint16)
	for i := range t[0] {
		crc := uint16(i)
		for range 8 {
			crc = crc>>1 ^ vcrcPoly*(crc&1)
		}
		t[0][i] = crc
	}
	for k := 1; k < len(t); k++ {
		for b, v := range t[k-1] {
			t[k][b] = t[0][byte(v)] ^ v>>8
		}
	}
	return t
}

// VCRC computes the variant CRC (IBA 7.8.2) of a native packet: from the LRH
// through the ICRC, or through the payload of a raw packet. It goes on the wire
// least significant byte first.
func VCRC(b []byte) uint16 { return ^updateVCRC(0xffff, b) }

// PutVCRC writes the VCRC of all of b but its last two bytes to those. b must
// have at least VCRCLen bytes.
func PutVCRC(b []byte) {
	n := len(b) - VCRCLen
	binary.LittleEndian.PutUint16(b[n:], VCRC(b[:n]))
}

// CheckVCRC reports whether the VCRC in vcrc, its two bytes as they were on the wire, is
// that of head and tail, which are a packet in one or two pieces.
func CheckVCRC(head, tail, vcrc []byte) bool {
	crc := updateVCRC(updateVCRC(0xffff, head), tail)
	return len(vcrc) == VCRCLen && ^crc == binary.LittleEndian.Uint16(vcrc)
}

// updateVCRC runs the register over b, fast for any length.
func updateVCRC(crc uint16, b []byte) uint16 {
	if len(b) >= vcrcWorth {
		crc, b = foldVCRC(crc, b)
	}
	return lookUpVCRC(crc, b)
}

// lookUpVCRC is updateVCRC by tables alone.
func lookUpVCRC(crc uint16, b []byte) uint16 {
	t := vcrcTables
	for len(b) >= vcrcSlices {
		p := (*[vcrcSlices]byte)(b)
		crc = t[13][p[2]] ^ t[12][p[3]] ^ t[11][p[4]] ^ t[10][p[5]] ^
			t[9][p[6]] ^ t[8][p[7]] ^ t[7][p[8]] ^ t[6][p[9]] ^
			t[5][p[10]] ^ t[4][p[11]] ^ t[3][p[12]] ^ t[2][p[13]] ^
			t[1][p[14]] ^ t[0][p[15]] ^
			(t[15][p[0]^byte(crc)] ^ t[14][p[1]^byte(crc>>8)])
		b = b[vcrcSlices:]
	}
	for _, c := range b {
		crc = t[0][byte(crc)^c] ^ crc>>8
	}
	return crc
}

// A square of a polynomial over GF(2) has the same terms with twice the exponents. So
// the generator to the power of 64 is x^1024 + x^768 + x^192 + x^64 + 1, and what is a
// multiple of it is one of the generator: a word of 64 bits may be taken out of the
// packet when it is xored to the words 4, 13, 15 and 16 behind it (1024 less 768, 192,
// 64 and 0 bits). That takes no table and no multiplication.

// vcrcWords is how many words the generator to the power of 64 spans; vcrcFold is the
// same in bytes. From vcrcWorth bytes on, folding is faster than tables alone.
const (
	vcrcWords = 16
	vcrcFold  = 8 * vcrcWords
	vcrcWorth = 3 * vcrcFold
)

// foldVCRC runs the register over as many bytes of b as it can, and returns it with the
// rest. b must have vcrcWorth bytes.
func foldVCRC(crc uint16, b []byte) (reg uint16, rest []byte) {
	// s is the last words that were taken out, the oldest first. The register counts
	// as what was to be xored to the first word.
	s := [vcrcWords]uint64{uint64(crc)}
	for len(b) >= 2*vcrcFold {
		foldBlock(&s, (*[vcrcFold]byte)(b))
		b = b[vcrcFold:]
	}
	// The last words stay in; what is xored to them comes from words before them.
	words := s
	for i := range 4 {
		words[i] ^= s[i+vcrcWords-4]
	}
	for i := range 13 {
		words[i] ^= s[i+vcrcWords-13]
	}
	for i := range 15 {
		words[i] ^= s[i+vcrcWords-15]
	}
	var last [vcrcFold]byte
	for i, w := range words {
		w ^= binary.LittleEndian.Uint64(b[8*i:])
		binary.LittleEndian.PutUint64(last[8*i:], w)
	}
	return lookUpVCRC(0, last[:]), b[vcrcFold:]
}

// foldBlock takes the words of a block out.
func foldBlock(s *[vcrcWords]uint64, b *[vcrcFold]byte) {
	le := binary.LittleEndian
	s[0] ^= le.Uint64(b[0:]) ^ s[12] ^ s[3] ^ s[1]
	s[1] ^= le.Uint64(b[8:]) ^ s[13] ^ s[4] ^ s[2]
	s[2] ^= le.Uint64(b[16:]) ^ s[14] ^ s[5] ^ s[3]
	s[3] ^= le.Uint64(b[24:]) ^ s[15] ^ s[6] ^ s[4]
	s[4] ^= le.Uint64(b[32:]) ^ s[0] ^ s[7] ^ s[5]
	s[5] ^= le.Uint64(b[40:]) ^ s[1] ^ s[8] ^ s[6]
	s[6] ^= le.Uint64(b[48:]) ^ s[2] ^ s[9] ^ s[7]
	s[7] ^= le.Uint64(b[56:]) ^ s[3] ^ s[10] ^ s[8]
	s[8] ^= le.Uint64(b[64:]) ^ s[4] ^ s[11] ^ s[9]
	s[9] ^= le.Uint64(b[72:]) ^ s[5] ^ s[12] ^ s[10]
	s[10] ^= le.Uint64(b[80:]) ^ s[6] ^ s[13] ^ s[11]
	s[11] ^= le.Uint64(b[88:]) ^ s[7] ^ s[14] ^ s[12]
	s[12] ^= le.Uint64(b[96:]) ^ s[8] ^ s[15] ^ s[13]
	s[13] ^= le.Uint64(b[104:]) ^ s[9] ^ s[0] ^ s[14]
	s[14] ^= le.Uint64(b[112:]) ^ s[10] ^ s[1] ^ s[15]
	s[15] ^= le.Uint64(b[120:]) ^ s[11] ^ s[2] ^ s[0]
}
