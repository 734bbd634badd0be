package wire

import (
	"encoding/binary"
	"fmt"
)

// AtomicETH, the atomic extended header (IBA 9.3): compare and swap, fetch and
// add.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                      Virtual Address (8)                      |
//	+---------------------------------------------------------------+
//	|                             R_Key                             |
//	+---------------------------------------------------------------+
//	|                     Swap or Add Data (8)                      |
//	+---------------------------------------------------------------+
//	|                       Compare Data (8)                        |
//	+---------------------------------------------------------------+

// AtomicETHLen is the length of an AtomicETH in bytes.
const AtomicETHLen = 28

const (
	atomicOffRKey    = 8
	atomicOffSwapAdd = 12
	atomicOffCompare = 20
)

// AtomicETH is the atomic extended header. Operands travel big-endian; the
// responder works on the word in its own byte order.
type AtomicETH struct {
	VA      uint64 // virtual address in the responder, a multiple of 8
	RKey    uint32 // key of the responder's memory
	SwapAdd uint64 // compare and swap: the new value; fetch and add: the addend
	Compare uint64 // compare and swap: the expected value; else sent as 0, ignored
}

// ParseAtomicETH reads an AtomicETH. It returns ErrShort when b has fewer than
// AtomicETHLen bytes.
func ParseAtomicETH(b []byte) (AtomicETH, error) {
	if len(b) < AtomicETHLen {
		return AtomicETH{}, ErrShort
	}
	return AtomicETH{
		VA:      binary.BigEndian.Uint64(b),
		RKey:    binary.BigEndian.Uint32(b[atomicOffRKey:]),
		SwapAdd: binary.BigEndian.Uint64(b[atomicOffSwapAdd:]),
		Compare: binary.BigEndian.Uint64(b[atomicOffCompare:]),
	}, nil
}

// Put writes the header to b, which must have AtomicETHLen bytes.
func (h AtomicETH) Put(b []byte) {
	_ = b[AtomicETHLen-1]
	binary.BigEndian.PutUint64(b, h.VA)
	binary.BigEndian.PutUint32(b[atomicOffRKey:], h.RKey)
	binary.BigEndian.PutUint64(b[atomicOffSwapAdd:], h.SwapAdd)
	binary.BigEndian.PutUint64(b[atomicOffCompare:], h.Compare)
}

// String prints the header with tshark's names (infiniband.atomiceth.*).
func (h AtomicETH) String() string {
	return fmt.Sprintf("atomiceth.va=0x%x r_key=0x%08x swapdt=0x%x cmpdt=0x%x",
		h.VA, h.RKey, h.SwapAdd, h.Compare)
}
