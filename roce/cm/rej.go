package cm

import "encoding/binary"

// REJ, the reject (IBA 12.6.7).
//
//	byte  0 local comm ID (32)  4 remote comm ID (32)
//	      8 message (2), reserved (6)
//	      9 length of the information (7), reserved (1)
//	     10 reason (16)
//	     12 additional information (72)
//	     84 private data (148)

// Lengths of the free parts of a REJ in bytes.
const (
	PrivateREJ = 148
	InfoREJ    = 72
)

// REJ refuses a message.
type REJ struct {
	LocalCommID  uint32 // 0 when the sender has none
	RemoteCommID uint32
	Subject      Subject
	InfoLen      uint8 // bytes of Info, 7 bits
	Reason       Reason
	Info         [InfoREJ]byte // what the reason calls for
	Private      [PrivateREJ]byte
}

// ParseREJ reads a REJ from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes. InfoLen may be above InfoREJ.
func ParseREJ(mad []byte) (REJ, error) {
	b := data(mad)
	if b == nil {
		return REJ{}, ErrShort
	}
	return REJ{
		LocalCommID:  binary.BigEndian.Uint32(b[0:]),
		RemoteCommID: binary.BigEndian.Uint32(b[4:]),
		Subject:      Subject(b[8] >> 6), InfoLen: b[9] >> 1,
		Reason: Reason(binary.BigEndian.Uint16(b[10:])),
		Info:   [InfoREJ]byte(b[12:]), Private: [PrivateREJ]byte(b[84:]),
	}, nil
}

// Put writes the REJ as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *REJ) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

func (*REJ) attribute() Attribute { return AttributeREJ }

func (r *REJ) put(b *[DataLen]byte) {
	binary.BigEndian.PutUint32(b[0:], r.LocalCommID)
	binary.BigEndian.PutUint32(b[4:], r.RemoteCommID)
	b[8], b[9] = byte(r.Subject)<<6, r.InfoLen<<1
	binary.BigEndian.PutUint16(b[10:], uint16(r.Reason))
	copy(b[12:], r.Info[:])
	copy(b[84:], r.Private[:])
}
