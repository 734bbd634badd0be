package wire

import (
	"encoding/binary"
	"fmt"
)

// DETH, the datagram extended header (IBA 9.3): UD and RD.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+---------------------------------------------------------------+
//	|                             Q_Key                             |
//	+---------------+-----------------------------------------------+
//	|   reserved    |                     SrcQP                     |
//	+---------------+-----------------------------------------------+

// DETHLen is the length of a DETH in bytes.
const DETHLen = 8

const dethOffSrcQP = 4

// DETH is the datagram extended header.
type DETH struct {
	QKey  uint32 // queue key the receiver must agree with
	SrcQP uint32 // queue pair of the sender, 24 bits
}

// ParseDETH reads a DETH. It returns ErrShort when b has fewer than DETHLen bytes.
func ParseDETH(b []byte) (DETH, error) {
	if len(b) < DETHLen {
		return DETH{}, ErrShort
	}
	return DETH{
		QKey:  binary.BigEndian.Uint32(b),
		SrcQP: binary.BigEndian.Uint32(b[dethOffSrcQP:]) & max24,
	}, nil
}

// Put writes the header to b, which must have DETHLen bytes.
func (h DETH) Put(b []byte) {
	_ = b[DETHLen-1]
	binary.BigEndian.PutUint32(b, h.QKey)
	binary.BigEndian.PutUint32(b[dethOffSrcQP:], h.SrcQP&max24)
}

// String prints the header with tshark's names (infiniband.deth.*).
func (h DETH) String() string {
	return fmt.Sprintf("deth.q_key=0x%08x srcqp=0x%06x", h.QKey, h.SrcQP)
}
