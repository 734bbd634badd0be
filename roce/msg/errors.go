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
