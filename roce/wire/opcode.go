package wire

import "fmt"

// Opcode is the first byte of a BTH (IBA 9.2.1, table "OpCode field"): three
// bits of transport service, five bits of operation.
type Opcode uint8

// Opcodes of the reliable connection (RC).
const (
	RCSendFirst      Opcode = 0x00
	RCSendMiddle     Opcode = 0x01
	RCSendLast       Opcode = 0x02
	RCSendLastImm    Opcode = 0x03
	RCSendOnly       Opcode = 0x04
	RCSendOnlyImm    Opcode = 0x05
	RCWriteFirst     Opcode = 0x06
	RCWriteMiddle    Opcode = 0x07
	RCWriteLast      Opcode = 0x08
	RCWriteLastImm   Opcode = 0x09
	RCWriteOnly      Opcode = 0x0A
	RCWriteOnlyImm   Opcode = 0x0B
	RCReadRequest    Opcode = 0x0C
	RCReadRespFirst  Opcode = 0x0D
	RCReadRespMiddle Opcode = 0x0E
	RCReadRespLast   Opcode = 0x0F
	RCReadRespOnly   Opcode = 0x10
	RCAck            Opcode = 0x11
	RCAtomicAck      Opcode = 0x12
	RCCmpSwap        Opcode = 0x13
	RCFetchAdd       Opcode = 0x14
	RCSendLastInv    Opcode = 0x16
	RCSendOnlyInv    Opcode = 0x17
	RCFlush          Opcode = 0x1C
	RCAtomicWrite    Opcode = 0x1D
)

// Opcodes of the unreliable connection (UC).
const (
	UCSendFirst    Opcode = 0x20
	UCSendMiddle   Opcode = 0x21
	UCSendLast     Opcode = 0x22
	UCSendLastImm  Opcode = 0x23
	UCSendOnly     Opcode = 0x24
	UCSendOnlyImm  Opcode = 0x25
	UCWriteFirst   Opcode = 0x26
	UCWriteMiddle  Opcode = 0x27
	UCWriteLast    Opcode = 0x28
	UCWriteLastImm Opcode = 0x29
	UCWriteOnly    Opcode = 0x2A
	UCWriteOnlyImm Opcode = 0x2B
)

// Opcodes of the reliable datagram (RD). RoCE does not use them.
const (
	RDSendFirst      Opcode = 0x40
	RDSendMiddle     Opcode = 0x41
	RDSendLast       Opcode = 0x42
	RDSendLastImm    Opcode = 0x43
	RDSendOnly       Opcode = 0x44
	RDSendOnlyImm    Opcode = 0x45
	RDWriteFirst     Opcode = 0x46
	RDWriteMiddle    Opcode = 0x47
	RDWriteLast      Opcode = 0x48
	RDWriteLastImm   Opcode = 0x49
	RDWriteOnly      Opcode = 0x4A
	RDWriteOnlyImm   Opcode = 0x4B
	RDReadRequest    Opcode = 0x4C
	RDReadRespFirst  Opcode = 0x4D
	RDReadRespMiddle Opcode = 0x4E
	RDReadRespLast   Opcode = 0x4F
	RDReadRespOnly   Opcode = 0x50
	RDAck            Opcode = 0x51
	RDAtomicAck      Opcode = 0x52
	RDCmpSwap        Opcode = 0x53
	RDFetchAdd       Opcode = 0x54
	RDResync         Opcode = 0x55
)

// Opcodes of the unreliable datagram (UD).
const (
	UDSendOnly    Opcode = 0x64
	UDSendOnlyImm Opcode = 0x65
)

// CNP is the congestion notification packet of RoCE v2 (IBA annex A17).
const CNP Opcode = 0x81

// Opcodes of the extended reliable connection (XRC, IBA annex A14).
const (
	XRCSendFirst      Opcode = 0xA0
	XRCSendMiddle     Opcode = 0xA1
	XRCSendLast       Opcode = 0xA2
	XRCSendLastImm    Opcode = 0xA3
	XRCSendOnly       Opcode = 0xA4
	XRCSendOnlyImm    Opcode = 0xA5
	XRCWriteFirst     Opcode = 0xA6
	XRCWriteMiddle    Opcode = 0xA7
	XRCWriteLast      Opcode = 0xA8
	XRCWriteLastImm   Opcode = 0xA9
	XRCWriteOnly      Opcode = 0xAA
	XRCWriteOnlyImm   Opcode = 0xAB
	XRCReadRequest    Opcode = 0xAC
	XRCReadRespFirst  Opcode = 0xAD
	XRCReadRespMiddle Opcode = 0xAE
	XRCReadRespLast   Opcode = 0xAF
	XRCReadRespOnly   Opcode = 0xB0
	XRCAck            Opcode = 0xB1
	XRCAtomicAck      Opcode = 0xB2
	XRCCmpSwap        Opcode = 0xB3
	XRCFetchAdd       Opcode = 0xB4
	XRCSendLastInv    Opcode = 0xB6
	XRCSendOnlyInv    Opcode = 0xB7
)

// SelectiveAck is ours, from the manufacturers' range: an acknowledge of a
// reliable connection whose AETH tells of a PSN sequence error, and whose payload
// is a bitmap of SelectiveBits bits. Bit i, counted from the lowest of the first
// byte, says that the receiver keeps PSN + 1 + i. Only peers that agreed on it
// send it.
const SelectiveAck Opcode = 0xD1

// Requests of a reliable connection that an acknowledge rides on are ours, too: behind the headers
// of the request without it are an AETH, with the credits and the MSN of an ACK, and an APSN with
// the PSN that this has. Only peers that agreed on it send them.
const (
	SendOnlyAck     Opcode = 0xC4
	SendOnlyImmAck  Opcode = 0xC5
	WriteOnlyAck    Opcode = 0xCA
	WriteOnlyImmAck Opcode = 0xCB
)

// WithAck returns the opcode of a request of a reliable connection that an acknowledge rides on.
// There is none for one of several packets, nor for a response.
func (o Opcode) WithAck() (op Opcode, ok bool) {
	switch o {
	case RCSendOnly, RCSendOnlyImm, RCWriteOnly, RCWriteOnlyImm:
		return o | Opcode(ServiceMfr)<<5, true
	}
	return 0, false
}

// SelectiveBits is the number of bits of that map.
const SelectiveBits = 256

// Spec is the opcode's row of the table. It is never nil; the row of an opcode
// that nobody defined has Known false and no headers. The row is shared: read
// only.
func (o Opcode) Spec() *OpcodeSpec { return &opcodes[o] }

// String is the name in the table, or the number of an unknown opcode.
func (o Opcode) String() string {
	if s := o.Spec(); s.Known {
		return s.Name
	}
	return fmt.Sprintf("UNKNOWN_0x%02X", uint8(o))
}
