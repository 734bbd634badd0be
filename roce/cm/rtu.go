package cm

import "encoding/binary"

// RTU, ready to use (IBA 12.6.9), and DREP, the reply to a request for
// communication release (IBA 12.6.11), look alike.
//
//	byte  0 local comm ID (32)  4 remote comm ID (32)
//	      8 private data (224)

// PrivateRTU is the length of the private data of an RTU and a DREP in bytes.
const PrivateRTU = 224

// RTU says that the sender's QP is ready.
type RTU struct {
	LocalCommID  uint32
	RemoteCommID uint32
	Private      [PrivateRTU]byte
}

// DREP answers a DREQ.
type DREP RTU

// ParseRTU reads an RTU from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes.
func ParseRTU(mad []byte) (RTU, error) {
	b := data(mad)
	if b == nil {
		return RTU{}, ErrShort
	}
	return RTU{
		LocalCommID:  binary.BigEndian.Uint32(b[0:]),
		RemoteCommID: binary.BigEndian.Uint32(b[4:]),
		Private:      [PrivateRTU]byte(b[8:]),
	}, nil
}

// ParseDREP is ParseRTU of a DREP.
func ParseDREP(mad []byte) (DREP, error) {
	r, err := ParseRTU(mad)
	return DREP(r), err
}

// Put writes the RTU as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *RTU) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

// Put writes the DREP as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *DREP) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

func (*RTU) attribute() Attribute  { return AttributeRTU }
func (*DREP) attribute() Attribute { return AttributeDREP }

func (r *RTU) put(b *[DataLen]byte) {
	binary.BigEndian.PutUint32(b[0:], r.LocalCommID)
	binary.BigEndian.PutUint32(b[4:], r.RemoteCommID)
	copy(b[8:], r.Private[:])
}

func (r *DREP) put(b *[DataLen]byte) { (*RTU)(r).put(b) }
