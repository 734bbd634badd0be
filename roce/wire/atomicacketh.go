package wire

import (
	"encoding/binary"
	"fmt"
)

// AtomicAckETH, the atomic acknowledge extended header (IBA 9.3).
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                   Original Remote Data (8)                    |
//	+---------------------------------------------------------------+

// AtomicAckETHLen is the length of an AtomicAckETH in bytes.
const AtomicAckETHLen = 8

// AtomicAckETH is the atomic acknowledge extended header.
type AtomicAckETH struct {
	OrigData uint64 // what the responder's memory held before the operation
}

// ParseAtomicAckETH reads an AtomicAckETH. It returns ErrShort when b has fewer
// than AtomicAckETHLen bytes.
func ParseAtomicAckETH(b []byte) (AtomicAckETH, error) {
	if len(b) < AtomicAckETHLen {
		return AtomicAckETH{}, ErrShort
	}
	return AtomicAckETH{OrigData: binary.BigEndian.Uint64(b)}, nil
}

// Put writes the header to b, which must have AtomicAckETHLen bytes.
func (h AtomicAckETH) Put(b []byte) {
	_ = b[AtomicAckETHLen-1]
	binary.BigEndian.PutUint64(b, h.OrigData)
}

// String prints the header with tshark's name (infiniband.atomicacketh.*).
func (h AtomicAckETH) String() string {
	return fmt.Sprintf("atomicacketh.origremdt=0x%x", h.OrigData)
}
