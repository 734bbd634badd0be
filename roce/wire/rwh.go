package wire

import (
	"encoding/binary"
	"fmt"
)

// RWH, the raw header (IBA chapter 5): native InfiniBand only, after an LRH whose LNH
// is LNHRaw.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------------------------------+-------------------------------+
//	|           reserved            |           EtherType           |
//	+-------------------------------+-------------------------------+

// RWHLen is the length of an RWH in bytes.
const RWHLen = 4

// RWH is the raw header.
type RWH struct {
	EtherType uint16
}

// ParseRWH reads an RWH. It returns ErrShort when b has fewer than RWHLen bytes.
func ParseRWH(b []byte) (RWH, error) {
	if len(b) < RWHLen {
		return RWH{}, ErrShort
	}
	return RWH{EtherType: uint16(binary.BigEndian.Uint32(b))}, nil
}

// Put writes the header to b, which must have RWHLen bytes.
func (h RWH) Put(b []byte) {
	_ = b[RWHLen-1]
	binary.BigEndian.PutUint32(b, uint32(h.EtherType))
}

// String prints the header with tshark's name (infiniband.rwh.etype).
func (h RWH) String() string { return fmt.Sprintf("rwh.etype=0x%04x", h.EtherType) }
