package cm

import "encoding/binary"

// DREQ, the request for communication release (IBA 12.6.10).
//
//	byte  0 local comm ID (32)  4 remote comm ID (32)
//	      8 remote QPN (24)    11 reserved
//	     12 private data (220)

// PrivateDREQ is the length of the private data of a DREQ in bytes.
const PrivateDREQ = 220

// DREQ asks to end a connection.
type DREQ struct {
	LocalCommID  uint32
	RemoteCommID uint32
	RemoteQPN    uint32 // 24 bits: the QP of the receiver
	Private      [PrivateDREQ]byte
}

// ParseDREQ reads a DREQ from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes.
func ParseDREQ(mad []byte) (DREQ, error) {
	b := data(mad)
	if b == nil {
		return DREQ{}, ErrShort
	}
	return DREQ{
		LocalCommID:  binary.BigEndian.Uint32(b[0:]),
		RemoteCommID: binary.BigEndian.Uint32(b[4:]),
		RemoteQPN:    uint24(b[8:]),
		Private:      [PrivateDREQ]byte(b[12:]),
	}, nil
}

// Put writes the DREQ as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *DREQ) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

func (*DREQ) attribute() Attribute { return AttributeDREQ }

func (r *DREQ) put(b *[DataLen]byte) {
	binary.BigEndian.PutUint32(b[0:], r.LocalCommID)
	binary.BigEndian.PutUint32(b[4:], r.RemoteCommID)
	putUint24(b[8:], r.RemoteQPN)
	copy(b[12:], r.Private[:])
}
