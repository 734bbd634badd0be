package wire

import (
	"encoding/binary"
	"fmt"
)

// ImmDt, the immediate data header (IBA 9.3).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                        Immediate Data                         |
//	+---------------------------------------------------------------+

// ImmDtLen is the length of an ImmDt in bytes.
const ImmDtLen = 4

// ImmDt is the immediate data header.
type ImmDt struct {
	Data uint32 // the four bytes read big-endian (verbs: be32toh of imm_data)
}

// ParseImmDt reads an ImmDt. It returns ErrShort when b has fewer than ImmDtLen
// bytes.
func ParseImmDt(b []byte) (ImmDt, error) {
	if len(b) < ImmDtLen {
		return ImmDt{}, ErrShort
	}
	return ImmDt{Data: binary.BigEndian.Uint32(b)}, nil
}

// Put writes the header to b, which must have ImmDtLen bytes.
func (h ImmDt) Put(b []byte) {
	_ = b[ImmDtLen-1]
	binary.BigEndian.PutUint32(b, h.Data)
}

// String prints the header with tshark's name (infiniband.immdt).
func (h ImmDt) String() string { return fmt.Sprintf("immdt=0x%08x", h.Data) }
