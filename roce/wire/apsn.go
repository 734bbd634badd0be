package wire

import (
	"encoding/binary"
	"fmt"
)

// APSN, the header with the PSN that the AETH of a request is for. It is ours: in a packet with
// the acknowledge of others in front of its payload the BTH has the PSN of the request.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-----------------------------------------------+
//	|   reserved    |               PSN acknowledged                |
//	+---------------+-----------------------------------------------+

// APSNLen is the length of an APSN in bytes.
const APSNLen = 4

// APSN is the header with the PSN that is acknowledged, with all before it.
type APSN struct {
	PSN PSN
}

// ParseAPSN reads an APSN. It returns ErrShort when b has fewer than APSNLen bytes.
func ParseAPSN(b []byte) (APSN, error) {
	if len(b) < APSNLen {
		return APSN{}, ErrShort
	}
	return APSN{PSN: PSN(binary.BigEndian.Uint32(b) & 0xffffff)}, nil
}

// Put writes the header to b, which must have APSNLen bytes.
func (h APSN) Put(b []byte) {
	_ = b[APSNLen-1]
	binary.BigEndian.PutUint32(b, uint32(h.PSN)&0xffffff)
}

// String prints the header.
func (h APSN) String() string { return fmt.Sprintf("acked=%d", h.PSN) }
