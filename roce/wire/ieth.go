package wire

import (
	"encoding/binary"
	"fmt"
)

// IETH, the invalidate extended header (IBA 9.3): SEND with invalidate.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                             R_Key                             |
//	+---------------------------------------------------------------+

// IETHLen is the length of an IETH in bytes.
const IETHLen = 4

// IETH is the invalidate extended header.
type IETH struct {
	RKey uint32 // the key that the responder takes out of use
}

// ParseIETH reads an IETH. It returns ErrShort when b has fewer than IETHLen bytes.
func ParseIETH(b []byte) (IETH, error) {
	if len(b) < IETHLen {
		return IETH{}, ErrShort
	}
	return IETH{RKey: binary.BigEndian.Uint32(b)}, nil
}

// Put writes the header to b, which must have IETHLen bytes.
func (h IETH) Put(b []byte) {
	_ = b[IETHLen-1]
	binary.BigEndian.PutUint32(b, h.RKey)
}

// String prints the header with tshark's name (infiniband.ieth).
func (h IETH) String() string { return fmt.Sprintf("ieth=0x%08x", h.RKey) }
