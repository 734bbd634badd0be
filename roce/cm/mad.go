package cm

import (
	"encoding/binary"
	"fmt"
)

// MAD, the management datagram that carries each message (IBA 13.4.2).
//
//	byte  0 base version  1 class  2 class version  3 method
//	      4 status (16)            6 class specific (16)
//	      8 transaction ID (64)
//	     16 attribute ID (16)     18 reserved (16)
//	     20 attribute modifier (32)
//	     24 data of the message, 232 bytes
//
// Offsets of the messages count from the start of their data.

// Lengths in bytes.
const (
	MADLen    = 256 // every MAD
	HeaderLen = 24  // its header
	DataLen   = MADLen - HeaderLen
)

// What the header of a CM message says (IBA 12.6, 13.4.2, 16.7.1).
const (
	BaseVersion  = 1
	MgmtClass    = 0x07 // communication management
	ClassVersion = 2
	MethodSend   = 0x03
)

const (
	madOffTID       = 8
	madOffAttribute = 16
	madOffModifier  = 20
)

// Attribute is the attribute ID of a MAD: which message it is (IBA 16.7.2).
type Attribute uint16

// The messages.
const (
	AttributeREQ     Attribute = 0x0010 // request for communication
	AttributeMRA     Attribute = 0x0011 // message receipt acknowledgement
	AttributeREJ     Attribute = 0x0012 // reject
	AttributeREP     Attribute = 0x0013 // reply to request
	AttributeRTU     Attribute = 0x0014 // ready to use
	AttributeDREQ    Attribute = 0x0015 // request for communication release
	AttributeDREP    Attribute = 0x0016 // reply to that
	AttributeSIDRREQ Attribute = 0x0017 // service ID resolution request
	AttributeSIDRREP Attribute = 0x0018 // service ID resolution response
	AttributeLAP     Attribute = 0x0019 // load alternate path
	AttributeAPR     Attribute = 0x001a // alternate path response

	attributeEnd Attribute = 0x001b
)

var attributeNames = [attributeEnd - AttributeREQ]string{
	"REQ", "MRA", "REJ", "REP", "RTU", "DREQ", "DREP", "SIDR_REQ", "SIDR_REP", "LAP", "APR",
}

// String returns the name of the message.
func (a Attribute) String() string {
	if a.known() {
		return attributeNames[a-AttributeREQ]
	}
	return fmt.Sprintf("attribute 0x%04x", uint16(a))
}

// known reports whether there is such a message.
func (a Attribute) known() bool { return a >= AttributeREQ && a < attributeEnd }

// Header is the common header of a MAD.
type Header struct {
	BaseVersion  uint8
	MgmtClass    uint8
	ClassVersion uint8
	Method       uint8
	Status       uint16
	TID          uint64 // transaction ID
	Attribute    Attribute
	Modifier     uint32 // attribute modifier: options that both ends may ignore, else 0
}

// MessageHeader is the header of a CM message.
func MessageHeader(a Attribute, tid uint64) Header {
	return Header{
		BaseVersion: BaseVersion, MgmtClass: MgmtClass, ClassVersion: ClassVersion,
		Method: MethodSend, TID: tid, Attribute: a,
	}
}

// ParseHeader reads the header of a MAD. It returns ErrShort when b has fewer
// than MADLen bytes. Whether the MAD is one for the connection manager is told by
// its fields.
func ParseHeader(b []byte) (Header, error) {
	if len(b) < MADLen {
		return Header{}, ErrShort
	}
	be := binary.BigEndian
	return Header{
		BaseVersion: b[0], MgmtClass: b[1], ClassVersion: b[2], Method: b[3],
		Status: be.Uint16(b[4:]), TID: be.Uint64(b[madOffTID:]),
		Attribute: Attribute(be.Uint16(b[madOffAttribute:])),
		Modifier:  be.Uint32(b[madOffModifier:]),
	}, nil
}

// Put writes the header to b, which must have MADLen bytes, and zeros behind it.
func (h Header) Put(b []byte) {
	clear(b[:MADLen])
	be := binary.BigEndian
	b[0], b[1], b[2], b[3] = h.BaseVersion, h.MgmtClass, h.ClassVersion, h.Method
	be.PutUint16(b[4:], h.Status)
	be.PutUint64(b[madOffTID:], h.TID)
	be.PutUint16(b[madOffAttribute:], uint16(h.Attribute))
	be.PutUint32(b[madOffModifier:], h.Modifier)
}

// String prints the header with tshark's names (infiniband.mad.*).
func (h Header) String() string {
	return fmt.Sprintf("mad.baseversion=%d mgmtclass=0x%02x classversion=%d method=0x%02x "+
		"status=%d transactionid=0x%016x attributeid=%s attributemodifier=0x%08x",
		h.BaseVersion, h.MgmtClass, h.ClassVersion, h.Method, h.Status, h.TID, h.Attribute,
		h.Modifier)
}

// data returns the data of a MAD, nil when it is too short.
func data(mad []byte) *[DataLen]byte {
	if len(mad) < MADLen {
		return nil
	}
	return (*[DataLen]byte)(mad[HeaderLen:])
}

// A message can be written behind a header.
type message interface {
	// attribute says which message it is.
	attribute() Attribute
	// put writes the data; reserved bytes are zero already.
	put(b *[DataLen]byte)
}

// begin writes the header of a message to b, which must have MADLen bytes, and
// returns where its data goes.
func begin(b []byte, tid uint64, a Attribute) *[DataLen]byte {
	MessageHeader(a, tid).Put(b)
	return (*[DataLen]byte)(b[HeaderLen:])
}

// putMessage writes a whole MAD to b, which must have MADLen bytes.
func putMessage(b []byte, tid uint64, m message) {
	m.put(begin(b, tid, m.attribute()))
	switch r := m.(type) {
	case *REQ:
		putOptions(b, r.Options)
	case *REP:
		putOptions(b, r.Options)
	}
}

// putOptions writes the attribute modifier.
func putOptions(b []byte, options uint32) {
	binary.BigEndian.PutUint32(b[madOffModifier:], options)
}
