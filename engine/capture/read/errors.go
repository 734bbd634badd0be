package read

import "errors"

// Why there is nothing more to read, beside io.EOF and errors of the io.Reader.
var (
	// ErrFormat says that a file is none that this package knows.
	ErrFormat = errors.New("no capture: neither pcap, pcapng nor ERF")
	// ErrCut says that a file ends in the middle of a packet or of a block.
	ErrCut = errors.New("the file ends in the middle of a packet")
	// ErrDamaged says that a file contradicts itself, or has a length that cannot be.
	ErrDamaged = errors.New("the file is damaged")
)
