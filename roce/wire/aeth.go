package wire

import (
	"encoding/binary"
	"fmt"
)

// AETH, the ACK extended header (IBA 9.3): acknowledgements, READ responses
// but the middle ones, atomic acknowledgements.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-----------------------------------------------+
//	|   Syndrome    |                      MSN                      |
//	+---------------+-----------------------------------------------+

// AETHLen is the length of an AETH in bytes.
const AETHLen = 4

// AETH is the ACK extended header.
type AETH struct {
	Syndrome Syndrome
	MSN      uint32 // messages the responder completed, modulo 2^24
}

// ParseAETH reads an AETH. It returns ErrShort when b has fewer than AETHLen
// bytes. The reserved top bit of the syndrome reads as zero.
func ParseAETH(b []byte) (AETH, error) {
	if len(b) < AETHLen {
		return AETH{}, ErrShort
	}
	w := binary.BigEndian.Uint32(b)
	return AETH{Syndrome: Syndrome(w>>24) & syndromeMask, MSN: w & max24}, nil
}

// Put writes the header to b, which must have AETHLen bytes.
func (h AETH) Put(b []byte) {
	_ = b[AETHLen-1]
	binary.BigEndian.PutUint32(b, uint32(h.Syndrome&syndromeMask)<<24|h.MSN&max24)
}

// String prints the header with tshark's names (infiniband.aeth.*).
func (h AETH) String() string {
	return fmt.Sprintf("aeth.syndrome=%s msn=%d", h.Syndrome, h.MSN)
}
