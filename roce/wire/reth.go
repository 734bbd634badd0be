package wire

import (
	"encoding/binary"
	"fmt"
)

// RETH, the RDMA extended header (IBA 9.3): WRITE, READ, FLUSH, ATOMIC WRITE.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                      Virtual Address (8)                      |
//	+---------------------------------------------------------------+
//	|                             R_Key                             |
//	+---------------------------------------------------------------+
//	|                          DMA Length                           |
//	+---------------------------------------------------------------+

// RETHLen is the length of a RETH in bytes.
const RETHLen = 16

const (
	rethOffRKey   = 8
	rethOffDMALen = 12
)

// RETH is the RDMA extended header.
type RETH struct {
	VA     uint64 // virtual address in the responder
	RKey   uint32 // key of the responder's memory
	DMALen uint32 // bytes of the whole message, 0 to 2^31
}

// ParseRETH reads a RETH. It returns ErrShort when b has fewer than RETHLen bytes.
func ParseRETH(b []byte) (RETH, error) {
	if len(b) < RETHLen {
		return RETH{}, ErrShort
	}
	return RETH{
		VA:     binary.BigEndian.Uint64(b),
		RKey:   binary.BigEndian.Uint32(b[rethOffRKey:]),
		DMALen: binary.BigEndian.Uint32(b[rethOffDMALen:]),
	}, nil
}

// Put writes the header to b, which must have RETHLen bytes.
func (h RETH) Put(b []byte) {
	_ = b[RETHLen-1]
	binary.BigEndian.PutUint64(b, h.VA)
	binary.BigEndian.PutUint32(b[rethOffRKey:], h.RKey)
	binary.BigEndian.PutUint32(b[rethOffDMALen:], h.DMALen)
}

// String prints the header with tshark's names (infiniband.reth.*).
func (h RETH) String() string {
	return fmt.Sprintf("reth.va=0x%x r_key=0x%08x dmalen=%d", h.VA, h.RKey, h.DMALen)
}
