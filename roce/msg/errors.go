package msg

import "errors"

// Errors of this package. None of them carries data, so none allocates.
var (
	// ErrNotHello says that private data does not begin with a hello: the peer does not speak
	// messages.
	ErrNotHello = errors.New("msg: private data is no hello")
	// ErrVersion says that no version is spoken by both ends, or that a control message is of
	// another version than this package speaks.
	ErrVersion = errors.New("msg: version is not spoken")
	// ErrCapability says that one end requires a capability that the other has not.
	ErrCapability = errors.New("msg: required capability is missing")
	// ErrSession says that there is no connection that a further rail could be of.
	ErrSession = errors.New("msg: no such session")
	// ErrService says that the two ends of a connection want different services.
	ErrService = errors.New("msg: another service is spoken")

	// ErrShort says that the bytes end inside the header.
	ErrShort = errors.New("msg: bytes end inside the header")
	// ErrMagic says that the bytes are no control message.
	ErrMagic = errors.New("msg: no control message")
	// ErrType says that there is no control message or record of this type.
	ErrType = errors.New("msg: unknown type")
	// ErrLength says that something is longer than what it is in, or a control message longer or
	// shorter than it may be.
	ErrLength = errors.New("msg: wrong length")
	// ErrRecords says that the records of a frame and the number of records that it states differ.
	ErrRecords = errors.New("msg: wrong number of records")
	// ErrFlags says that a flag is set that this type does not have.
	ErrFlags = errors.New("msg: unknown flag")
	// ErrReserved says that a field or padding that has to be zero is not.
	ErrReserved = errors.New("msg: reserved field is not zero")
	// ErrRange says that the value of a field is not one that it may have.
	ErrRange = errors.New("msg: field out of range")
	// ErrRails says that the entries of further rails are not in rising order.
	ErrRails = errors.New("msg: rails out of order")
)

// Errors of an endpoint and its connections.
var (
	// ErrInvalid says that an argument is out of range.
	ErrInvalid = errors.New("msg: invalid argument")
	// ErrQueued says that a message or a receive is under way already.
	ErrQueued = errors.New("msg: under way already")
	// ErrClosed says that the connection was closed.
	ErrClosed = errors.New("msg: closed")
	// ErrCancelled says that the application took it back.
	ErrCancelled = errors.New("msg: cancelled")
	// ErrQuota says that a peer wants more memory here than there may be for peers.
	ErrQuota = errors.New("msg: no memory for more slots of peers")
	// ErrStalled says that a peer has not sent what it was asked for, for Config.Stall.
	ErrStalled = errors.New("msg: the peer does not send what it announced")
	// ErrMemory says that memory of a message cannot be accessed: nothing is mapped there any more,
	// or it may not be written.
	ErrMemory = errors.New("msg: the memory of a message cannot be accessed")
	// ErrOwner says that the owner of the machine broke its rules.
	ErrOwner = errors.New("msg: the machine is driven wrongly")
)

// Errors of peers, wrapped in a PeerError.
var (
	// ErrNoRing says that a frame is for slots that are not there.
	ErrNoRing = errors.New("msg: no such slots")
	// ErrSlot says that a frame is not in the slot that is next, or that is taken.
	ErrSlot = errors.New("msg: wrong slot")
	// ErrEpoch says that a frame or a message is of another epoch than it can be.
	ErrEpoch = errors.New("msg: wrong epoch")
	// ErrSequence says that a frame or a control message is not the next one.
	ErrSequence = errors.New("msg: wrong sequence")
	// ErrCredit says that more slots were given back than were used.
	ErrCredit = errors.New("msg: wrong credit")
	// ErrState says that a control message is for what is not there, or not so far.
	ErrState = errors.New("msg: unexpected control message")
	// ErrKey says that a request of the peer has a key that is not its own, or that names
	// something else.
	ErrKey = errors.New("msg: wrong key")
	// ErrFlood says that a peer wants more done at once than it may.
	ErrFlood = errors.New("msg: too much at once")
)

// A PeerError says that the peer broke the protocol, and how.
type PeerError struct{ Err error }

// Error implements error.
func (e *PeerError) Error() string { return "msg: the peer broke the protocol: " + e.Err.Error() }

// Unwrap returns what it did.
func (e *PeerError) Unwrap() error { return e.Err }

// A StatusError is what a peer says that came of a message or of the connection.
type StatusError struct{ Status Status }

// Error implements error.
func (e *StatusError) Error() string { return "msg: the peer says: " + e.Status.String() }

// Is reports whether the status is that of an error of this package: of ErrVersion, ErrCapability
// or ErrService, when a peer refuses to connect.
func (e *StatusError) Is(target error) bool {
	switch e.Status {
	case StatusVersion:
		return target == ErrVersion
	case StatusCapability:
		return target == ErrCapability
	case StatusService:
		return target == ErrService
	}
	return false
}
