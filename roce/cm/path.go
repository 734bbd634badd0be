package cm

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// PathFields are the 44 bytes of a REQ that describe one path (IBA 12.7.10 to
// 12.7.22). Local is the end of the sender.
//
//	byte  0 local LID (16)   2 remote LID (16)
//	      4 local GID (128)
//	     20 remote GID (128)
//	     36 flow label (20), reserved (6), packet rate (6)
//	     40 traffic class    41 hop limit
//	     42 SL (4), subnet local (1), reserved (3)
//	     43 local ACK timeout (5), reserved (3)
type PathFields struct {
	LocalLID, RemoteLID uint16
	LocalGID, RemoteGID wire.GID
	FlowLabel           uint32 // 20 bits
	PacketRate          uint8  // IBA rate code, 6 bits
	TrafficClass        uint8
	HopLimit            uint8
	SL                  uint8 // service level, 4 bits
	SubnetLocal         bool
	LocalAckTimeout     uint8 // 4.096 us * 2^n, 5 bits
}

const pathLen = 44

func parsePath(b []byte) PathFields {
	_ = b[pathLen-1]
	be := binary.BigEndian
	flow := be.Uint32(b[36:])
	return PathFields{
		LocalLID: be.Uint16(b), RemoteLID: be.Uint16(b[2:]),
		LocalGID: wire.GID(b[4:20]), RemoteGID: wire.GID(b[20:36]),
		FlowLabel: flow >> 12, PacketRate: uint8(flow & 0x3f),
		TrafficClass: b[40], HopLimit: b[41],
		SL: b[42] >> 4, SubnetLocal: b[42]&8 != 0, LocalAckTimeout: b[43] >> 3,
	}
}

func (p *PathFields) put(b []byte) {
	_ = b[pathLen-1]
	be := binary.BigEndian
	be.PutUint16(b, p.LocalLID)
	be.PutUint16(b[2:], p.RemoteLID)
	copy(b[4:], p.LocalGID[:])
	copy(b[20:], p.RemoteGID[:])
	be.PutUint32(b[36:], p.FlowLabel<<12|uint32(p.PacketRate&0x3f))
	b[40], b[41] = p.TrafficClass, p.HopLimit
	b[42] = p.SL<<4 | bit(p.SubnetLocal, 8)
	b[43] = p.LocalAckTimeout << 3
}
