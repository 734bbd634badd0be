package cm

import "errors"

// Errors of this package. Those of the machine come wrapped with what was wrong.
var (
	// ErrShort says that the bytes end inside the MAD.
	ErrShort = errors.New("cm: bytes end inside the MAD")
	// ErrIPHeader says that private data does not begin with an IP CM header.
	ErrIPHeader = errors.New("cm: no IP CM header of version 0")
	// ErrInvalid says that an argument is wrong.
	ErrInvalid = errors.New("cm: invalid argument")
	// ErrUnknown says that there is no such connection, request or listener, or
	// no more.
	ErrUnknown = errors.New("cm: no such identifier")
	// ErrState says that the conversation is not where the call would fit.
	ErrState = errors.New("cm: not possible in this state")
	// ErrInUse says that another listener has the service and address.
	ErrInUse = errors.New("cm: service and address are in use")
	// ErrFull says that the machine holds as many conversations as it may.
	ErrFull = errors.New("cm: too many connections")
)
