package verbs

import (
	"fmt"

	"xroce/roce/wire"
)

// GSIQKey is the Q_Key of every GSI QP (IBA 3.5.3).
const GSIQKey = 0x80010000

// QPType is the transport service of a QP, with the values of enum ibv_qp_type
// (of the kernel's enum ib_qp_type for GSI).
type QPType uint8

// The types of a QP.
const (
	TypeGSI       QPType = 1 // the datagram QP of management, always number 1
	TypeRC        QPType = 2 // reliable connection
	TypeUC        QPType = 3 // unreliable connection
	TypeUD        QPType = 4 // unreliable datagram
	TypeRawPacket QPType = 8 // whole Ethernet frames
	TypeXRCSend   QPType = 9 // initiator of an extended reliable connection
	TypeXRCRecv   QPType = 10

	typeCount = 11
)

var typeNames = [typeCount]string{
	TypeGSI: "GSI", TypeRC: "RC", TypeUC: "UC", TypeUD: "UD", TypeRawPacket: "RAW_PACKET",
	TypeXRCSend: "XRC_SEND", TypeXRCRecv: "XRC_RECV",
}

// String returns the type as verbs spells it.
func (t QPType) String() string {
	if t < typeCount && typeNames[t] != "" {
		return typeNames[t]
	}
	return fmt.Sprintf("type %d", uint8(t))
}

// Known reports whether there is such a type.
func (t QPType) Known() bool { return t < typeCount && typeNames[t] != "" }

// Reliable reports whether the peer acknowledges.
func (t QPType) Reliable() bool { return t == TypeRC || t.XRC() }

// XRC reports whether the type is one end of an XRC.
func (t QPType) XRC() bool { return t == TypeXRCSend || t == TypeXRCRecv }

// Datagram reports whether each work request names its destination.
func (t QPType) Datagram() bool { return t == TypeUD || t == TypeGSI }

// Service is the transport service of the packets of such a QP.
func (t QPType) Service() wire.Service {
	switch {
	case t.XRC():
		return wire.ServiceXRC
	case t == TypeUC:
		return wire.ServiceUC
	case t.Datagram():
		return wire.ServiceUD
	}
	return wire.ServiceRC
}

// HasSend reports whether such a QP has a send queue.
func (t QPType) HasSend() bool { return t != TypeXRCRecv }

// HasRecv reports whether such a QP has a receive queue, its own or a shared one.
func (t QPType) HasRecv() bool { return !t.XRC() }
