package cm

import (
	"encoding/binary"
	"fmt"
)

// MRA, the message receipt acknowledgement (IBA 12.6.6).
//
//	byte  0 local comm ID (32)  4 remote comm ID (32)
//	      8 message (2), reserved (6)
//	      9 service timeout (5), reserved (3)
//	     10 private data (222)

// PrivateMRA is the length of the private data of an MRA in bytes.
const PrivateMRA = 222

// Subject is the message that an MRA acknowledges or a REJ refuses.
type Subject uint8

// The subjects. Value 2 is the LAP in an MRA, none of those before in a REJ.
const (
	SubjectREQ  Subject = 0
	SubjectREP  Subject = 1
	SubjectNone Subject = 2
)

// String returns the name of the message.
func (s Subject) String() string {
	switch s {
	case SubjectREQ:
		return "REQ"
	case SubjectREP:
		return "REP"
	case SubjectNone:
		return "other"
	}
	return fmt.Sprintf("subject %d", uint8(s))
}

// MRA says that a message came and that its answer will take a while.
type MRA struct {
	LocalCommID    uint32
	RemoteCommID   uint32
	Subject        Subject
	ServiceTimeout uint8 // 4.096 us * 2^n, 5 bits
	Private        [PrivateMRA]byte
}

// ParseMRA reads an MRA from a MAD. It returns ErrShort when b has fewer than
// MADLen bytes.
func ParseMRA(mad []byte) (MRA, error) {
	b := data(mad)
	if b == nil {
		return MRA{}, ErrShort
	}
	return MRA{
		LocalCommID:  binary.BigEndian.Uint32(b[0:]),
		RemoteCommID: binary.BigEndian.Uint32(b[4:]),
		Subject:      Subject(b[8] >> 6), ServiceTimeout: b[9] >> 3,
		Private: [PrivateMRA]byte(b[10:]),
	}, nil
}

// Put writes the MRA as a MAD with a transaction ID to b, which must have MADLen
// bytes.
func (r *MRA) Put(b []byte, tid uint64) { r.put(begin(b, tid, r.attribute())) }

func (*MRA) attribute() Attribute { return AttributeMRA }

func (r *MRA) put(b *[DataLen]byte) {
	binary.BigEndian.PutUint32(b[0:], r.LocalCommID)
	binary.BigEndian.PutUint32(b[4:], r.RemoteCommID)
	b[8], b[9] = byte(r.Subject)<<6, r.ServiceTimeout<<3
	copy(b[10:], r.Private[:])
}
