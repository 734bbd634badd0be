package roce

import (
	"fmt"

	"xroce/roce/wire"
)

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

// known reports whether there is such a type.
func (t QPType) known() bool { return t < typeCount && typeNames[t] != "" }

// reliable reports whether the peer acknowledges.
func (t QPType) reliable() bool { return t == TypeRC || t.xrc() }

// xrc reports whether the type is one end of an XRC.
func (t QPType) xrc() bool { return t == TypeXRCSend || t == TypeXRCRecv }

// datagram reports whether each work request names its destination.
func (t QPType) datagram() bool { return t == TypeUD || t == TypeGSI }

// service is the transport service of the packets of such a QP.
func (t QPType) service() wire.Service {
	switch {
	case t.xrc():
		return wire.ServiceXRC
	case t == TypeUC:
		return wire.ServiceUC
	case t.datagram():
		return wire.ServiceUD
	}
	return wire.ServiceRC
}

// hasSend reports whether such a QP has a send queue.
func (t QPType) hasSend() bool { return t != TypeXRCRecv }

// hasRecv reports whether such a QP has a receive queue, its own or a shared one.
func (t QPType) hasRecv() bool { return !t.xrc() }
