package msg

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Hello, what an end of a connection says of itself, in the private data of the REQ and of the
// REP; in that of a REJ it says what the refuser speaks, and why it refuses.
//
//	byte  0 magic "xmsg"
//	      4 version spoken at most (8)     5 version spoken at least (8)
//	      6 capabilities (16)              8 capabilities that the peer must have (16)
//	     10 rail (8)                      11 service (8)
//	     12 payload of a slot wanted (32)
//	     16 slots wanted (16)             18 rendezvous open at once (16)
//	     20 session token (128)
//	     36 receives that the peer may count on (32)
//	     40 incarnation (64)
//	     48 status (8)                    49 rails (8)
//	     50 reserved (48), ignored
//
// The first 12 bytes stand so in every version: with them it is decided whether the rest can be
// read. Private data is longer than a hello in the REP and the REJ; what is behind is ignored.

// HelloLen is the length of a hello in bytes: all the private data that is left in a REQ behind
// the addresses of rdma_cm.
const HelloLen = 56

// Versions of the protocol that this package speaks.
const (
	Version    = 1 // at most
	MinVersion = 1 // at least
)

const helloMagic = 0x786d7367 // "xmsg"

// Capabilities is a set of what an end can do. Unknown ones are ignored, unless required.
type Capabilities uint16

// The capabilities.
const (
	CapabilityGet       Capabilities = 1 << 0 // its memory may be read: the peer may get
	CapabilityPut       Capabilities = 1 << 1 // it names memory to be written: the peer may put
	CapabilityProvision Capabilities = 1 << 2 // it provisions receive buffers when asked
	CapabilityRails     Capabilities = 1 << 3 // it takes further rails into a session
)

// Service is the interface that speaks over a connection.
type Service uint8

// The services.
const (
	ServiceChannel  Service = 1 // messages between two ends
	ServiceEndpoint Service = 2 // messages of an endpoint that has many peers
	ServiceStream   Service = 3 // bytes, in both directions
)

// Token names a session, to those who know it.
type Token [16]byte

// Hello is what an end says of itself.
type Hello struct {
	Version      uint8        // spoken at most
	MinVersion   uint8        // spoken at least
	Capabilities Capabilities // what the sender can do
	Required     Capabilities // what the peer must be able to do
	Rail         uint8        // by which of the rails of the sender this goes, from 0
	Service      Service
	Payload      uint32 // bytes of payload in a slot of the peer that are wanted; it decides
	Slots        uint16 // slots of the peer that are wanted; it decides
	Rendezvous   uint16 // operations of the peer that may be open at once
	Session      Token  // zero in the REQ of a new connection; drawn by the sender of the REP
	Receives     uint32 // receives that are always posted: the peer may have as many on the way
	Incarnation  uint64 // of the endpoint: drawn when it is opened
	Status       Status // why a REJ refuses, else StatusOK
	Rails        uint8  // how many rails the sender has, with CapabilityRails
}

// ParseHello reads a hello from private data. It returns ErrNotHello when that is shorter than
// HelloLen or has another magic. No field is judged: see Agree, which goes before the use of any.
func ParseHello(private []byte) (Hello, error) {
	be := binary.BigEndian
	if len(private) < HelloLen || be.Uint32(private) != helloMagic {
		return Hello{}, ErrNotHello
	}
	b := private[:HelloLen]
	return Hello{
		Version: b[4], MinVersion: b[5],
		Capabilities: Capabilities(be.Uint16(b[6:])), Required: Capabilities(be.Uint16(b[8:])),
		Rail: b[10], Service: Service(b[11]),
		Payload: be.Uint32(b[12:]), Slots: be.Uint16(b[16:]), Rendezvous: be.Uint16(b[18:]),
		Session: Token(b[20:36]), Receives: be.Uint32(b[36:]), Incarnation: be.Uint64(b[40:]),
		Status: Status(b[48]), Rails: b[49],
	}, nil
}

// Put writes the hello to private data, which must have HelloLen bytes. Those behind are left
// alone.
func (h *Hello) Put(private []byte) {
	b := private[:HelloLen]
	be := binary.BigEndian
	be.PutUint32(b, helloMagic)
	b[4], b[5] = h.Version, h.MinVersion
	be.PutUint16(b[6:], uint16(h.Capabilities))
	be.PutUint16(b[8:], uint16(h.Required))
	b[10], b[11] = h.Rail, uint8(h.Service)
	be.PutUint32(b[12:], h.Payload)
	be.PutUint16(b[16:], h.Slots)
	be.PutUint16(b[18:], h.Rendezvous)
	copy(b[20:36], h.Session[:])
	be.PutUint32(b[36:], h.Receives)
	be.PutUint64(b[40:], h.Incarnation)
	b[48], b[49] = uint8(h.Status), h.Rails
	clear(b[50:])
}

// Agreement is what the hellos of two ends have in common.
type Agreement struct {
	Version      uint8        // the lower of both
	Capabilities Capabilities // those of both
}

// Agree says what two hellos have in common; both ends come to the same. It returns ErrVersion
// when no version is spoken by both, ErrCapability when one requires what the other has not
// (a capability that is not known here is never one of ours), ErrService when they differ in it.
func Agree(ours, theirs *Hello) (Agreement, error) {
	a := Agreement{
		Version:      min(ours.Version, theirs.Version),
		Capabilities: ours.Capabilities & theirs.Capabilities,
	}
	switch {
	case a.Version < max(ours.MinVersion, theirs.MinVersion):
		return Agreement{}, ErrVersion
	case (ours.Required&^theirs.Capabilities)|(theirs.Required&^ours.Capabilities) != 0:
		return Agreement{}, ErrCapability
	case ours.Service != theirs.Service:
		return Agreement{}, ErrService
	}
	return a, nil
}

// Refusal is the status that tells a peer why it is not connected: by an error of ParseHello or
// Agree, or of the end that refuses.
func Refusal(err error) Status {
	var refused *StatusError
	switch {
	case errors.As(err, &refused):
		return StatusProtocolError // who asks does not refuse
	case errors.Is(err, ErrVersion):
		return StatusVersion
	case errors.Is(err, ErrCapability):
		return StatusCapability
	case errors.Is(err, ErrService), errors.Is(err, ErrNotHello):
		return StatusService
	case errors.Is(err, ErrClosed):
		return StatusClosed
	case errors.Is(err, ErrSession):
		return StatusSession
	}
	return StatusNoMemory
}

// String prints the hello as the decoder does, without the session, which is a secret of two.
func (h *Hello) String() string {
	return fmt.Sprintf("HELLO version=%d..%d capabilities=0x%04x required=0x%04x rail=%d "+
		"service=%d payload=%d slots=%d rendezvous=%d receives=%d incarnation=0x%016x "+
		"status=%s rails=%d",
		h.MinVersion, h.Version, uint16(h.Capabilities), uint16(h.Required), h.Rail,
		uint8(h.Service), h.Payload, h.Slots, h.Rendezvous, h.Receives, h.Incarnation, h.Status,
		h.Rails)
}
