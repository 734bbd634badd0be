package cm

import (
	"encoding/binary"

	"xroce/roce/wire"
)

// REQ, the request for communication (IBA 12.6.5).
//
//	byte  0 local comm ID (32)      4 reserved   5 vendor ID (24)
//	      8 service ID (64)
//	     16 local CA GUID (64)     24 reserved  28 local Q_Key (32)
//	     32 local QPN (24)         35 responder resources
//	     36 local EECN (24)        39 initiator depth
//	     40 remote EECN (24)       43 remote CM timeout (5), transport (2), flow control (1)
//	     44 starting PSN (24)      47 local CM timeout (5), retry count (3)
//	     48 P_Key (16)             50 MTU (4), RDC exists (1), RNR retry count (3)
//	                               51 max CM retries (4), SRQ (1), extended transport (3)
//	     52 primary path (44)
//	     96 alternate path (44)
//	    140 private data (92)

// PrivateREQ is the length of the private data of a REQ in bytes.
const PrivateREQ = 92

// Transport is the transport service that a REQ asks for.
type Transport uint8

// The transport services.
const (
	TransportRC       Transport = 0
	TransportUC       Transport = 1
	TransportRD       Transport = 2
	TransportExtended Transport = 3 // of a REQ: see REQ.ExtendedTransport

	// TransportXRC is what Connect and Listen call XRC: TransportExtended with ExtendedXRC.
	TransportXRC = TransportExtended | ExtendedXRC<<extendedShift
)

// ExtendedXRC is the extended transport of XRC (IBA A14.3).
const ExtendedXRC = 1

// extendedShift is where a Transport has the extended one.
const extendedShift = 2

// offered reports whether connections of a transport are made here.
func (t Transport) offered() bool {
	return t == TransportRC || t == TransportUC || t == TransportXRC
}

// service is the transport that a REQ asks for, with the extended one.
func (r *REQ) service() Transport {
	if r.Transport != TransportExtended {
		return r.Transport
	}
	return r.Transport | Transport(r.ExtendedTransport)<<extendedShift
}

// REQ is the request for communication.
type REQ struct {
	LocalCommID       uint32
	ServiceID         ServiceID
	LocalCAGUID       uint64
	LocalQKey         uint32
	LocalQPN          uint32 // 24 bits
	ResponderRes      uint8  // READs and atomics that the sender serves at once
	LocalEECN         uint32 // 24 bits
	InitiatorDepth    uint8  // READs and atomics that the sender wants to have outstanding
	RemoteEECN        uint32 // 24 bits
	RemoteTimeout     uint8  // of the CM that receives this, 4.096 us * 2^n
	Transport         Transport
	FlowControl       bool     // end to end
	StartingPSN       wire.PSN // the first that the sender of the REQ expects
	LocalTimeout      uint8    // of the CM that sends this, 4.096 us * 2^n
	RetryCount        uint8    // 0 to 7
	PKey              uint16
	PathMTU           wire.MTU // 4 bits on the wire
	RDCExists         bool
	RNRRetryCount     uint8  // 0 to 7
	MaxCMRetries      uint8  // 0 to 15
	SRQ               bool   // the sender's QP has a shared receive queue
	ExtendedTransport uint8  // 3 bits
	VendorID          uint32 // 24 bits: who defined Options, 0 for none
	Options           uint32 // the attribute modifier of the MAD
	Primary           PathFields
	Alternate         PathFields // all zero for none
	Private           [PrivateREQ]byte
}

// ParseREQ reads a REQ from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes.
func ParseREQ(mad []byte) (REQ, error) {
	b := data(mad)
	if b == nil {
		return REQ{}, ErrShort
	}
	be := binary.BigEndian
	return REQ{
		VendorID: uint24(b[5:]), Options: be.Uint32(mad[madOffModifier:]),
		LocalCommID: be.Uint32(b[0:]), ServiceID: ServiceID(be.Uint64(b[8:])),
		LocalCAGUID: be.Uint64(b[16:]), LocalQKey: be.Uint32(b[28:]),
		LocalQPN: uint24(b[32:]), ResponderRes: b[35],
		LocalEECN: uint24(b[36:]), InitiatorDepth: b[39], RemoteEECN: uint24(b[40:]),
		RemoteTimeout: b[43] >> 3, Transport: Transport(b[43] >> 1 & 3), FlowControl: b[43]&1 != 0,
		StartingPSN: wire.PSN(uint24(b[44:])), LocalTimeout: b[47] >> 3, RetryCount: b[47] & 7,
		PKey: be.Uint16(b[48:]), PathMTU: wire.MTU(b[50] >> 4), RDCExists: b[50]&8 != 0,
		RNRRetryCount: b[50] & 7, MaxCMRetries: b[51] >> 4, SRQ: b[51]&8 != 0,
		ExtendedTransport: b[51] & 7,
		Primary:           parsePath(b[52:]), Alternate: parsePath(b[96:]),
		Private: [PrivateREQ]byte(b[140:]),
	}, nil
}

// Put writes the REQ as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *REQ) Put(b []byte, tid uint64) {
	r.put(begin(b, tid, r.attribute()))
	putOptions(b, r.Options)
}

func (*REQ) attribute() Attribute { return AttributeREQ }

func (r *REQ) put(b *[DataLen]byte) {
	be := binary.BigEndian
	be.PutUint32(b[0:], r.LocalCommID)
	putUint24(b[5:], r.VendorID)
	be.PutUint64(b[8:], uint64(r.ServiceID))
	be.PutUint64(b[16:], r.LocalCAGUID)
	be.PutUint32(b[28:], r.LocalQKey)
	putUint24(b[32:], r.LocalQPN)
	b[35] = r.ResponderRes
	putUint24(b[36:], r.LocalEECN)
	b[39] = r.InitiatorDepth
	putUint24(b[40:], r.RemoteEECN)
	b[43] = r.RemoteTimeout<<3 | byte(r.Transport)&3<<1 | bit(r.FlowControl, 1)
	putUint24(b[44:], uint32(r.StartingPSN))
	b[47] = r.LocalTimeout<<3 | r.RetryCount&7
	be.PutUint16(b[48:], r.PKey)
	b[50] = byte(r.PathMTU)<<4 | bit(r.RDCExists, 8) | r.RNRRetryCount&7
	b[51] = r.MaxCMRetries<<4 | bit(r.SRQ, 8) | r.ExtendedTransport&7
	r.Primary.put(b[52:])
	r.Alternate.put(b[96:])
	copy(b[140:], r.Private[:])
}
