package wire

import (
	"encoding/binary"
	"fmt"
)

// RDETH, the reliable datagram extended header (IBA 9.3). RoCE has no RD; the
// header is here so that native captures decode.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------+-----------------------------------------------+
//	|   reserved    |                  EE-Context                   |
//	+---------------+-----------------------------------------------+

// RDETHLen is the length of an RDETH in bytes.
const RDETHLen = 4

// RDETH is the reliable datagram extended header.
type RDETH struct {
	EECtx uint32 // end-to-end context, 24 bits
}

// ParseRDETH reads an RDETH. It returns ErrShort when b has fewer than RDETHLen
// bytes.
func ParseRDETH(b []byte) (RDETH, error) {
	if len(b) < RDETHLen {
		return RDETH{}, ErrShort
	}
	return RDETH{EECtx: binary.BigEndian.Uint32(b) & max24}, nil
}

// Put writes the header to b, which must have RDETHLen bytes.
func (h RDETH) Put(b []byte) {
	_ = b[RDETHLen-1]
	binary.BigEndian.PutUint32(b, h.EECtx&max24)
}

// String prints the header with tshark's name (infiniband.rdeth.eecnxt).
func (h RDETH) String() string { return fmt.Sprintf("rdeth.eecnxt=0x%06x", h.EECtx) }
