package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"xroce/encap"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// A hello is what ends tell each other before any datagram, in the private data of the
// connection manager. All numbers are big-endian.
//
//	 0                   1                   2                   3
//	+---------------------------------------------------------------+
//	|                        magic "xtun"                           |
//	+---------------+---------------+---------------+---------------+
//	|    version    |    format     |     flags     |  full packet  |
//	+---------------+---------------+---------------+---------------+
//	|            segment            |       MTU of the inside       |
//	+-------------------------------+-------------------------------+
//	|                  longest datagram that is taken               |
//	+---------------------------------------------------------------+
//	|          instance: 64 random bits of the process              |
//	+-------------------------------+-------------------------------+
//	|             P_Key             |                               |
//	+-------------------------------+          MAC address          +
//	|                                                               |
//	+---------------------------------------------------------------+
//	|               GID of the group, if there is one               |
//	+---------------------------------------------------------------+
//
// The full packet, over RC, is its payload in units of 16 bytes, less one, or 0 for the path MTU.
type hello struct {
	format   encap.Format
	flags    uint8
	segment  uint16
	mtu      uint16
	largest  uint32
	instance uint64
	pkey     uint16
	mac      [6]byte
	group    wire.GID
	packet   uint8 // full packet
}

// helloLen fits the private data of every message of the connection manager; what has a group,
// over UD, is longer.
const helloLen = 32

const (
	helloMagic   = "xtun"
	helloVersion = 2
)

// Flags of a hello.
const (
	// helloWhole: packets of TCP that are not cut are understood, by their inner.Hint.
	helloWhole = 1 << 0
	// helloSealed: packets are encrypted.
	helloSealed = 1 << 1
	// helloGroup: what is for all goes to a group, which follows.
	helloGroup = 1 << 2
	// helloFull, of a refusal: there is no room for one more peer that is learned, or connection.
	helloFull = 1 << 3
)

// len is how long the hello is.
func (h *hello) len() int {
	if h.flags&helloGroup != 0 {
		return helloLen + len(h.group)
	}
	return helloLen
}

// put writes the hello.
func (h *hello) put() []byte {
	b := make([]byte, h.len())
	copy(b, helloMagic)
	b[4], b[5], b[6], b[7] = helloVersion, byte(h.format), h.flags, h.packet
	binary.BigEndian.PutUint16(b[8:], h.segment)
	binary.BigEndian.PutUint16(b[10:], h.mtu)
	binary.BigEndian.PutUint32(b[12:], h.largest)
	binary.BigEndian.PutUint64(b[16:], h.instance)
	binary.BigEndian.PutUint16(b[24:], h.pkey)
	copy(b[26:], h.mac[:])
	copy(b[helloLen:], h.group[:]) // which there is room for if there is one
	return b
}

// errNoHello says that whoever is there is no tunnel.
var errNoHello = errors.New("tunnel: no hello of a tunnel")

// parseHello reads one. What is behind it is ignored.
func parseHello(b []byte) (h hello, err error) {
	if len(b) < helloLen || !bytes.HasPrefix(b, []byte(helloMagic)) {
		return hello{}, errNoHello
	}
	if b[4] != helloVersion {
		return hello{}, fmt.Errorf("tunnel: version %d of the hello, ours is %d", b[4],
			helloVersion)
	}
	h = hello{
		format: encap.Format(b[5]), flags: b[6], segment: binary.BigEndian.Uint16(b[8:]),
		mtu: binary.BigEndian.Uint16(b[10:]), largest: binary.BigEndian.Uint32(b[12:]),
		instance: binary.BigEndian.Uint64(b[16:]), pkey: binary.BigEndian.Uint16(b[24:]),
		mac: [6]byte(b[26:]), packet: b[7],
	}
	if len(b) < h.len() {
		return hello{}, errNoHello
	}
	copy(h.group[:], b[helloLen:h.len()])
	return h, nil
}

// groupText names the group.
func (h *hello) groupText() string {
	if h.flags&helloGroup == 0 {
		return "none"
	}
	return h.group.Addr().String()
}

// A MismatchError says why two ends do not fit together. It is what they say of themselves.
type MismatchError struct {
	What        string // partition, segment, encryption, format or group
	Ours, Their string
}

// Error names both.
func (e *MismatchError) Error() string {
	return fmt.Sprintf("tunnel: %s %s here and %s there", e.What, e.Ours, e.Their)
}

// onOff says whether there is a key.
func onOff(flags uint8) string {
	if flags&helloSealed != 0 {
		return "on"
	}
	return "off"
}

// agrees is nil when two ends fit together.
func (h *hello) agrees(their *hello) error {
	switch {
	case !verbs.PKeysMatch(h.pkey, their.pkey):
		return &MismatchError{
			"P_Key", fmt.Sprintf("0x%04x", h.pkey), fmt.Sprintf("0x%04x", their.pkey),
		}
	case h.segment != their.segment:
		return &MismatchError{"segment", fmt.Sprint(h.segment), fmt.Sprint(their.segment)}
	case (h.flags^their.flags)&helloSealed != 0:
		return &MismatchError{"encryption", onOff(h.flags), onOff(their.flags)}
	case h.format != their.format:
		return &MismatchError{"format", h.format.String(), their.format.String()}
	case h.groupText() != their.groupText():
		return &MismatchError{"group", h.groupText(), their.groupText()}
	}
	return nil
}
