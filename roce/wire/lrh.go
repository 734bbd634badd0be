package wire

import (
	"encoding/binary"
	"fmt"
)

// LRH, the local route header (IBA 7.7). Native InfiniBand only.
//
//	 0                   1                   2                   3
//	 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//	+-------+-------+-------+---+---+-------------------------------+
//	|  VL   | LVer  |  SL   |rsv|LNH|             DLID              |
//	+-------+-------+-------+---+---+-------------------------------+
//	|  rsv    |       PktLen        |             SLID              |
//	+---------+---------------------+-------------------------------+

// LRHLen is the length of an LRH in bytes.
const LRHLen = 8

const (
	lrhOffDLID   = 2
	lrhOffPktLen = 4
	lrhOffSLID   = 6

	lrhPktLenMask = 1<<11 - 1
)

// LNH says which header follows the LRH.
type LNH uint8

// Values of LNH (IBA 7.7).
const (
	LNHRaw    LNH = 0 // raw packet, RWH follows: no ICRC
	LNHIPv6   LNH = 1 // raw packet, IPv6 follows: no ICRC
	LNHLocal  LNH = 2 // BTH follows
	LNHGlobal LNH = 3 // GRH follows
)

// LRH is the local route header.
type LRH struct {
	VL     uint8  // virtual lane, 4 bits
	LVer   uint8  // link version, 0
	SL     uint8  // service level, 4 bits
	LNH    LNH    // what follows, 2 bits
	DLID   uint16 // destination local identifier
	PktLen uint16 // words of 4 bytes from the LRH through the ICRC, 11 bits
	SLID   uint16 // source local identifier
}

// ParseLRH reads an LRH. It returns ErrShort when b has fewer than LRHLen bytes.
func ParseLRH(b []byte) (LRH, error) {
	if len(b) < LRHLen {
		return LRH{}, ErrShort
	}
	return LRH{
		VL:     b[0] >> 4,
		LVer:   b[0] & 0xf,
		SL:     b[1] >> 4,
		LNH:    LNH(b[1] & 3),
		DLID:   binary.BigEndian.Uint16(b[lrhOffDLID:]),
		PktLen: binary.BigEndian.Uint16(b[lrhOffPktLen:]) & lrhPktLenMask,
		SLID:   binary.BigEndian.Uint16(b[lrhOffSLID:]),
	}, nil
}

// Put writes the header to b, which must have LRHLen bytes.
func (h LRH) Put(b []byte) {
	_ = b[LRHLen-1]
	b[0] = h.VL<<4 | h.LVer&0xf
	b[1] = h.SL<<4 | byte(h.LNH)&3
	binary.BigEndian.PutUint16(b[lrhOffDLID:], h.DLID)
	binary.BigEndian.PutUint16(b[lrhOffPktLen:], h.PktLen&lrhPktLenMask)
	binary.BigEndian.PutUint16(b[lrhOffSLID:], h.SLID)
}

// String prints the header with tshark's names (infiniband.lrh.*).
func (h LRH) String() string {
	return fmt.Sprintf("lrh.vl=%d lver=%d sl=%d lnh=%d dlid=0x%04x pktlen=%d slid=0x%04x",
		h.VL, h.LVer, h.SL, h.LNH, h.DLID, h.PktLen, h.SLID)
}
