package wire

import (
	"encoding/binary"
	"fmt"
)

// FETH, the flush extended header (IBA annex A19, memory placement
// extensions): between the BTH and the RETH of a FLUSH.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------+---+-------+
//	|                     reserved                      |SEL|  PLT  |
//	+---------------------------------------------------+---+-------+

// FETHLen is the length of a FETH in bytes.
const FETHLen = 4

// Placement types of a FLUSH, a bit set.
const (
	FlushGlobal     uint8 = 1 << 0 // make the data visible to everyone
	FlushPersistent uint8 = 1 << 1 // make the data survive a power failure
)

// Selectivity levels of a FLUSH.
const (
	FlushRange  uint8 = 0 // the range that the RETH names
	FlushRegion uint8 = 1 // the whole memory region of the RETH's R_Key
)

// FETH is the flush extended header.
type FETH struct {
	SEL uint8 // selectivity level, 2 bits
	PLT uint8 // placement types, 4 bits
}

// ParseFETH reads a FETH. It returns ErrShort when b has fewer than FETHLen bytes.
func ParseFETH(b []byte) (FETH, error) {
	if len(b) < FETHLen {
		return FETH{}, ErrShort
	}
	return FETH{SEL: b[3] >> 4 & 3, PLT: b[3] & 0xf}, nil
}

// Put writes the header to b, which must have FETHLen bytes.
func (h FETH) Put(b []byte) {
	_ = b[FETHLen-1]
	binary.BigEndian.PutUint32(b, uint32(h.SEL&3)<<4|uint32(h.PLT&0xf))
}

// String prints the header. tshark has no names for it.
func (h FETH) String() string { return fmt.Sprintf("feth.sel=%d plt=0x%x", h.SEL, h.PLT) }
