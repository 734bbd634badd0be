package cm

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// LAP, load alternate path (IBA 12.8.1).
//
//	byte  0 local comm ID (32)  4 remote comm ID (32)  8 reserved
//	     12 remote QPN (24)    15 remote CM timeout (5), reserved (3)
//	     16 reserved           20 local LID (16)      22 remote LID (16)
//	     24 local GID (128)
//	     40 remote GID (128)
//	     56 flow label (20), reserved (4)             59 traffic class
//	     60 hop limit          61 reserved (2), packet rate (6)
//	     62 SL (4), subnet local (1), reserved (3)    63 ACK timeout (5), reserved (3)
//	     64 private data (168)

// APR, the alternate path response (IBA 12.8.2).
//
//	byte  0 local comm ID (32)  4 remote comm ID (32)
//	      8 length of the information   9 status   10 reserved
//	     12 additional information (72)
//	     84 private data (148)

// Lengths of the free parts of both in bytes.
const (
	PrivateLAP = 168
	PrivateAPR = 148
	InfoAPR    = 72
)

// APRUnsupported is the status of an APR from an end that has no alternate paths
// (IBA 12.8.2.1).
const APRUnsupported = 2

// LAP asks to change the alternate path of a connection.
type LAP struct {
	LocalCommID   uint32
	RemoteCommID  uint32
	RemoteQPN     uint32 // 24 bits: the QP of the receiver
	RemoteTimeout uint8  // of the CM that receives this, 4.096 us * 2^n
	Path          PathFields
	Private       [PrivateLAP]byte
}

// APR answers a LAP.
type APR struct {
	LocalCommID  uint32
	RemoteCommID uint32
	InfoLen      uint8 // bytes of Info
	Status       uint8 // 0 for success
	Info         [InfoAPR]byte
	Private      [PrivateAPR]byte
}

// ParseLAP reads a LAP from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes.
func ParseLAP(mad []byte) (LAP, error) {
	b := data(mad)
	if b == nil {
		return LAP{}, ErrShort
	}
	be := binary.BigEndian
	return LAP{
		LocalCommID: be.Uint32(b[0:]), RemoteCommID: be.Uint32(b[4:]),
		RemoteQPN: uint24(b[12:]), RemoteTimeout: b[15] >> 3,
		Path: PathFields{
			LocalLID: be.Uint16(b[20:]), RemoteLID: be.Uint16(b[22:]),
			LocalGID: wire.GID(b[24:40]), RemoteGID: wire.GID(b[40:56]),
			FlowLabel: uint24(b[56:]) >> 4, TrafficClass: b[59], HopLimit: b[60],
			PacketRate: b[61] & 0x3f, SL: b[62] >> 4, SubnetLocal: b[62]&8 != 0,
			LocalAckTimeout: b[63] >> 3,
		},
		Private: [PrivateLAP]byte(b[64:]),
	}, nil
}

// ParseAPR reads an APR from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes. InfoLen may be above InfoAPR.
func ParseAPR(mad []byte) (APR, error) {
	b := data(mad)
	if b == nil {
		return APR{}, ErrShort
	}
	return APR{
		LocalCommID:  binary.BigEndian.Uint32(b[0:]),
		RemoteCommID: binary.BigEndian.Uint32(b[4:]),
		InfoLen:      b[8], Status: b[9],
		Info: [InfoAPR]byte(b[12:]), Private: [PrivateAPR]byte(b[84:]),
	}, nil
}

// Put writes the LAP as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *LAP) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

// Put writes the APR as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *APR) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

func (*LAP) attribute() Attribute { return AttributeLAP }
func (*APR) attribute() Attribute { return AttributeAPR }

func (r *LAP) put(b *[DataLen]byte) {
	be := binary.BigEndian
	p := &r.Path
	be.PutUint32(b[0:], r.LocalCommID)
	be.PutUint32(b[4:], r.RemoteCommID)
	putUint24(b[12:], r.RemoteQPN)
	b[15] = r.RemoteTimeout << 3
	be.PutUint16(b[20:], p.LocalLID)
	be.PutUint16(b[22:], p.RemoteLID)
	copy(b[24:], p.LocalGID[:])
	copy(b[40:], p.RemoteGID[:])
	putUint24(b[56:], p.FlowLabel<<4)
	b[59], b[60], b[61] = p.TrafficClass, p.HopLimit, p.PacketRate&0x3f
	b[62] = p.SL<<4 | bit(p.SubnetLocal, 8)
	b[63] = p.LocalAckTimeout << 3
	copy(b[64:], r.Private[:])
}

func (r *APR) put(b *[DataLen]byte) {
	binary.BigEndian.PutUint32(b[0:], r.LocalCommID)
	binary.BigEndian.PutUint32(b[4:], r.RemoteCommID)
	b[8], b[9] = r.InfoLen, r.Status
	copy(b[12:], r.Info[:])
	copy(b[84:], r.Private[:])
}
