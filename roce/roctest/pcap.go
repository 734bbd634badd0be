package roctest

import (
	"encoding/binary"
	"errors"
)

// ErrPcap says that bytes are not a capture file that Pcap reads.
var ErrPcap = errors.New("roctest: not a little-endian pcap file of whole Ethernet frames")

// Pcap returns the frames of a classic capture file. They share its memory.
func Pcap(file []byte) ([][]byte, error) {
	const (
		magic      = 0xa1b2c3d4
		fileHeader = 24
		recHeader  = 16
		ethernet   = 1
	)
	le := binary.LittleEndian
	if len(file) < fileHeader || le.Uint32(file) != magic || le.Uint32(file[20:]) != ethernet {
		return nil, ErrPcap
	}
	var frames [][]byte
	for rest := file[fileHeader:]; len(rest) > 0; {
		if len(rest) < recHeader {
			return nil, ErrPcap
		}
		n := int(le.Uint32(rest[8:]))
		rest = rest[recHeader:]
		if n > len(rest) {
			return nil, ErrPcap
		}
		frames = append(frames, rest[:n:n])
		rest = rest[n:]
	}
	return frames, nil
}
