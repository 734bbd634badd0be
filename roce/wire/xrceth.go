package wire

import (
	"encoding/binary"
	"fmt"
)

// XRCETH, the extended reliable connection header (IBA annex A14): directly
// after the BTH of every XRC request, absent in responses.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-----------------------------------------------+
//	|   reserved    |                    XRC SRQ                    |
//	+---------------+-----------------------------------------------+

// XRCETHLen is the length of an XRCETH in bytes.
const XRCETHLen = 4

// XRCETH is the extended reliable connection header.
type XRCETH struct {
	SRQN uint32 // number of the XRC shared receive queue, 24 bits
}

// ParseXRCETH reads an XRCETH. It returns ErrShort when b has fewer than
// XRCETHLen bytes.
func ParseXRCETH(b []byte) (XRCETH, error) {
	if len(b) < XRCETHLen {
		return XRCETH{}, ErrShort
	}
	return XRCETH{SRQN: binary.BigEndian.Uint32(b) & max24}, nil
}

// Put writes the header to b, which must have XRCETHLen bytes.
func (h XRCETH) Put(b []byte) {
	_ = b[XRCETHLen-1]
	binary.BigEndian.PutUint32(b, h.SRQN&max24)
}

// String prints the header. tshark has no name for it.
func (h XRCETH) String() string { return fmt.Sprintf("xrceth.srqn=0x%06x", h.SRQN) }
