package wire

import "encoding/binary"

// VCRCLen is the length of the variant CRC in bytes.
const VCRCLen = 2

// vcrcPoly is x^16 + x^12 + x^3 + x + 1 with the bits reversed.
const vcrcPoly = 0xD008

// vcrcTable is the CRC of each byte.
var vcrcTable = buildVCRC()

func buildVCRC() (t [256]uint16) {
	for i := range t {
		crc := uint16(i)
		for range 8 {
			crc = crc>>1 ^ vcrcPoly*(crc&1)
		}
		t[i] = crc
	}
	return t
}

// VCRC computes the variant CRC (IBA 7.8.2) of a native packet: from the LRH
// through the ICRC, or through the payload of a raw packet. It goes on the wire
// least significant byte first.
func VCRC(b []byte) uint16 { return ^updateVCRC(0xffff, b) }

// updateVCRC runs the register over b.
func updateVCRC(crc uint16, b []byte) uint16 {
	for _, c := range b {
		crc = vcrcTable[byte(crc)^c] ^ crc>>8
	}
	return crc
}

// PutVCRC writes the VCRC of all of b but its last two bytes to those. b must
// have at least VCRCLen bytes.
func PutVCRC(b []byte) {
	n := len(b) - VCRCLen
	binary.LittleEndian.PutUint16(b[n:], VCRC(b[:n]))
}
