package wire

import "errors"

// Errors of this package. None of them carries data, so none allocates.
var (
	// ErrShort says that the bytes end inside the header.
	ErrShort = errors.New("wire: bytes end inside the header")

	// ErrPath says that a Path cannot be turned into a Template. It is wrapped
	// with the field that is wrong.
	ErrPath = errors.New("wire: bad path")

	// ErrGRH says that the bytes before a datagram hold no network header.
	ErrGRH = errors.New("wire: no network header before the datagram")
)
