package cm

import (
	"encoding/binary"
	"fmt"
)

// SIDR_REQ, the service ID resolution request (IBA 12.11.1).
//
//	byte  0 request ID (32)   4 P_Key (16)   6 reserved
//	      8 service ID (64)
//	     16 private data (216)

// SIDR_REP, the service ID resolution response (IBA 12.11.2).
//
//	byte  0 request ID (32)   4 status   5 length of the information   6 vendor ID, ignored
//	      8 QPN (24)         11 vendor ID, ignored
//	     12 service ID (64)
//	     20 Q_Key (32)
//	     24 additional information (72)
//	     96 private data (136)

// Lengths of the free parts of both in bytes.
const (
	PrivateSIDRREQ = 216
	PrivateSIDRREP = 136
	InfoSIDRREP    = 72
)

// SIDRStatus is the status of the response to a service ID resolution request (IBA 12.11.2.1).
type SIDRStatus uint8

// The statuses.
const (
	SIDRSuccess     SIDRStatus = 0
	SIDRUnsupported SIDRStatus = 1 // no listener
	SIDRReject      SIDRStatus = 2 // the application said no
	SIDRNoQP        SIDRStatus = 3
	SIDRRedirect    SIDRStatus = 4
	SIDRVersion     SIDRStatus = 5 // class version not supported
)

var sidrNames = [...]string{
	"success", "service ID not supported", "rejected by service provider", "no QP available",
	"redirect", "unsupported version",
}

// String returns the status in words.
func (s SIDRStatus) String() string {
	if int(s) < len(sidrNames) {
		return sidrNames[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// SIDRREQ asks for the datagram QP of a service.
type SIDRREQ struct {
	RequestID uint32
	PKey      uint16
	ServiceID ServiceID
	Private   [PrivateSIDRREQ]byte
}

// SIDRREP is the response to a SIDRREQ.
type SIDRREP struct {
	RequestID uint32
	Status    SIDRStatus
	InfoLen   uint8  // bytes of Info
	QPN       uint32 // 24 bits
	ServiceID ServiceID
	QKey      uint32
	Info      [InfoSIDRREP]byte
	Private   [PrivateSIDRREP]byte
}

// ParseSIDRREQ reads a SIDR_REQ from a MAD. It returns ErrShort when b has fewer
// than MADLen bytes.
func ParseSIDRREQ(mad []byte) (SIDRREQ, error) {
	b := data(mad)
	if b == nil {
		return SIDRREQ{}, ErrShort
	}
	be := binary.BigEndian
	return SIDRREQ{
		RequestID: be.Uint32(b[0:]), PKey: be.Uint16(b[4:]),
		ServiceID: ServiceID(be.Uint64(b[8:])), Private: [PrivateSIDRREQ]byte(b[16:]),
	}, nil
}

// ParseSIDRREP reads a SIDR_REP from a MAD. It returns ErrShort when b has fewer
// than MADLen bytes. InfoLen may be above InfoSIDRREP.
func ParseSIDRREP(mad []byte) (SIDRREP, error) {
	b := data(mad)
	if b == nil {
		return SIDRREP{}, ErrShort
	}
	be := binary.BigEndian
	return SIDRREP{
		RequestID: be.Uint32(b[0:]), Status: SIDRStatus(b[4]), InfoLen: b[5],
		QPN: uint24(b[8:]), ServiceID: ServiceID(be.Uint64(b[12:])), QKey: be.Uint32(b[20:]),
		Info: [InfoSIDRREP]byte(b[24:]), Private: [PrivateSIDRREP]byte(b[96:]),
	}, nil
}

// Put writes the SIDR_REQ as a MAD with a transaction ID to b, which must have
// MADLen bytes.
func (r *SIDRREQ) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

// Put writes the SIDR_REP as a MAD with a transaction ID to b, which must have
// MADLen bytes.
func (r *SIDRREP) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

func (*SIDRREQ) attribute() Attribute { return AttributeSIDRREQ }
func (*SIDRREP) attribute() Attribute { return AttributeSIDRREP }

func (r *SIDRREQ) put(b *[DataLen]byte) {
	be := binary.BigEndian
	be.PutUint32(b[0:], r.RequestID)
	be.PutUint16(b[4:], r.PKey)
	be.PutUint64(b[8:], uint64(r.ServiceID))
	copy(b[16:], r.Private[:])
}

func (r *SIDRREP) put(b *[DataLen]byte) {
	be := binary.BigEndian
	be.PutUint32(b[0:], r.RequestID)
	b[4], b[5] = byte(r.Status), r.InfoLen
	putUint24(b[8:], r.QPN)
	be.PutUint64(b[12:], uint64(r.ServiceID))
	be.PutUint32(b[20:], r.QKey)
	copy(b[24:], r.Info[:])
	copy(b[96:], r.Private[:])
}
