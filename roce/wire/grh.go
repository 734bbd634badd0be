package wire

import (
	"encoding/binary"
	"fmt"
)

// GRH, the global route header (IBA 8.3): RoCE v1, and native InfiniBand
// between subnets. It has the layout of an IPv6 header.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+---------------+---------------------------------------+
//	| IPVer |    TClass     |               FlowLabel               |
//	+-------+---------------+-------+---------------+---------------+
//	|            PayLen             |    NxtHdr     |    HopLmt     |
//	+-------------------------------+---------------+---------------+
//	|                            SGID (16)                          |
//	+---------------------------------------------------------------+
//	|                            DGID (16)                          |
//	+---------------------------------------------------------------+

// GRHLen is the length of a GRH in bytes.
const GRHLen = 40

// GRHNxtHdrIBA is the NxtHdr value that says that a BTH follows.
const GRHNxtHdrIBA = 0x1B

const (
	grhOffPayLen = 4
	grhOffNxtHdr = 6
	grhOffHopLmt = 7
	grhOffSGID   = 8
	grhOffDGID   = 24

	grhIPVer         = 6
	grhFlowLabelMask = 1<<20 - 1
)

// GRH is the global route header.
type GRH struct {
	IPVer     uint8  // 6
	TClass    uint8  // traffic class
	FlowLabel uint32 // 20 bits
	PayLen    uint16 // bytes after the GRH up to and including the ICRC
	NxtHdr    uint8  // GRHNxtHdrIBA before a BTH
	HopLmt    uint8  // hop limit
	SGID      GID    // source
	DGID      GID    // destination
}

// ParseGRH reads a GRH. It returns ErrShort when b has fewer than GRHLen bytes.
func ParseGRH(b []byte) (GRH, error) {
	if len(b) < GRHLen {
		return GRH{}, ErrShort
	}
	w := binary.BigEndian.Uint32(b)
	return GRH{
		IPVer:     uint8(w >> 28),
		TClass:    uint8(w >> 20),
		FlowLabel: w & grhFlowLabelMask,
		PayLen:    binary.BigEndian.Uint16(b[grhOffPayLen:]),
		NxtHdr:    b[grhOffNxtHdr],
		HopLmt:    b[grhOffHopLmt],
		SGID:      GID(b[grhOffSGID:]),
		DGID:      GID(b[grhOffDGID:]),
	}, nil
}

// Put writes the header to b, which must have GRHLen bytes.
func (h GRH) Put(b []byte) {
	_ = b[GRHLen-1]
	binary.BigEndian.PutUint32(b,
		uint32(h.IPVer)<<28|uint32(h.TClass)<<20|h.FlowLabel&grhFlowLabelMask)
	binary.BigEndian.PutUint16(b[grhOffPayLen:], h.PayLen)
	b[grhOffNxtHdr] = h.NxtHdr
	b[grhOffHopLmt] = h.HopLmt
	copy(b[grhOffSGID:], h.SGID[:])
	copy(b[grhOffDGID:], h.DGID[:])
}

// String prints the header with tshark's names (infiniband.grh.*).
func (h GRH) String() string {
	return fmt.Sprintf("grh.ipver=%d tclass=%d flowlabel=0x%05x paylen=%d nxthdr=0x%02x "+
		"hoplmt=%d sgid=%s dgid=%s",
		h.IPVer, h.TClass, h.FlowLabel, h.PayLen, h.NxtHdr, h.HopLmt, h.SGID, h.DGID)
}
