package cm

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// REP, the reply to a request (IBA 12.6.8).
//
//	byte  0 local comm ID (32)    4 remote comm ID (32)
//	      8 local Q_Key (32)
//	     12 local QPN (24)       15 vendor ID, its highest byte
//	     16 local EECN (24)      19 vendor ID
//	     20 starting PSN (24)    23 vendor ID, its lowest byte
//	     24 responder resources  25 initiator depth
//	     26 target ACK delay (5), failover accepted (2), flow control (1)
//	     27 RNR retry count (3), SRQ (1), reserved (4)
//	     28 local CA GUID (64)
//	     36 private data (196)

// PrivateREP is the length of the private data of a REP in bytes.
const PrivateREP = 196

// REP is the reply to a request. Its numbers are the final ones, as its sender
// sees them.
type REP struct {
	LocalCommID    uint32
	RemoteCommID   uint32 // from the REQ
	LocalQKey      uint32
	LocalQPN       uint32   // 24 bits
	LocalEECN      uint32   // 24 bits; of XRC the target QP
	StartingPSN    wire.PSN // the first that the sender of the REP expects
	ResponderRes   uint8    // READs and atomics that the sender serves at once
	InitiatorDepth uint8    // READs and atomics that the sender will have outstanding
	TargetAckDelay uint8    // 4.096 us * 2^n
	Failover       uint8    // failover accepted: 0 yes, 1 no, 2 not an end that could
	FlowControl    bool     // end to end
	RNRRetryCount  uint8    // 0 to 7
	SRQ            bool     // the sender's QP has a shared receive queue
	VendorID       uint32   // 24 bits: who defined Options, 0 for none
	Options        uint32   // the attribute modifier of the MAD
	LocalCAGUID    uint64
	Private        [PrivateREP]byte
}

// ParseREP reads a REP from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes.
func ParseREP(mad []byte) (REP, error) {
	b := data(mad)
	if b == nil {
		return REP{}, ErrShort
	}
	be := binary.BigEndian
	return REP{
		LocalCommID: be.Uint32(b[0:]), RemoteCommID: be.Uint32(b[4:]),
		LocalQKey: be.Uint32(b[8:]), LocalQPN: uint24(b[12:]), LocalEECN: uint24(b[16:]),
		StartingPSN: wire.PSN(uint24(b[20:])), ResponderRes: b[24], InitiatorDepth: b[25],
		TargetAckDelay: b[26] >> 3, Failover: b[26] >> 1 & 3, FlowControl: b[26]&1 != 0,
		VendorID:      uint32(b[15])<<16 | uint32(b[19])<<8 | uint32(b[23]),
		Options:       be.Uint32(mad[madOffModifier:]),
		RNRRetryCount: b[27] >> 5, SRQ: b[27]&0x10 != 0, LocalCAGUID: be.Uint64(b[28:]),
		Private: [PrivateREP]byte(b[36:]),
	}, nil
}

// Put writes the REP as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *REP) Put(b []byte, tid uint64) {
	r.put(begin(b, tid, r.attribute()))
	putOptions(b, r.Options)
}

func (*REP) attribute() Attribute { return AttributeREP }

// setQPN notes the number of the QP that answers a REQ: of XRC it stands where the end-to-end
// context would (IBA A14.5; kernel drivers/infiniband/core/cm.c, cm_format_rep).
func (r *REP) setQPN(t Transport, qpn uint32) {
	if t == TransportXRC {
		r.LocalEECN = qpn
	} else {
		r.LocalQPN = qpn
	}
}

// qpn is the number of the QP that answers.
func (r *REP) qpn(t Transport) uint32 {
	if t == TransportXRC {
		return r.LocalEECN
	}
	return r.LocalQPN
}

func (r *REP) put(b *[DataLen]byte) {
	be := binary.BigEndian
	be.PutUint32(b[0:], r.LocalCommID)
	be.PutUint32(b[4:], r.RemoteCommID)
	be.PutUint32(b[8:], r.LocalQKey)
	putUint24(b[12:], r.LocalQPN)
	putUint24(b[16:], r.LocalEECN)
	putUint24(b[20:], uint32(r.StartingPSN))
	b[15], b[19], b[23] = byte(r.VendorID>>16), byte(r.VendorID>>8), byte(r.VendorID)
	b[24], b[25] = r.ResponderRes, r.InitiatorDepth
	b[26] = r.TargetAckDelay<<3 | r.Failover&3<<1 | bit(r.FlowControl, 1)
	b[27] = r.RNRRetryCount<<5 | bit(r.SRQ, 0x10)
	be.PutUint64(b[28:], r.LocalCAGUID)
	copy(b[36:], r.Private[:])
}
