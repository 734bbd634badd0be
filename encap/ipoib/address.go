package ipoib

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"

	"xroce/roce/wire"
)

// AddressLen is the length of a hardware address in bytes (INFINIBAND_ALEN of Linux).
const AddressLen = 20

// Flags say which connected modes an interface offers (RFC 4755 section 3.1).
type Flags uint8

// The flags. The other bits are reserved: zero when sent, ignored when received.
const (
	OffersRC Flags = 0x80
	OffersUC Flags = 0x40

	knownFlags = OffersRC | OffersUC
)

const (
	maxQPN  = 1<<24 - 1
	offGID  = 4
	qpnBits = 24
)

// An Address is the hardware address of an interface, or of a group, whose queue pair is
// wire.MulticastQP.
//
//	byte 0  flags    1 queue pair (24)
//	     4  GID (128)
//
// The number of the queue pair is another one each time the interface starts; the GID is not.
type Address struct {
	Flags Flags
	QPN   uint32 // of the queue pair for datagrams, 24 bits
	GID   wire.GID
}

// Put writes the address into the first AddressLen bytes of b.
func (a Address) Put(b []byte) {
	binary.BigEndian.PutUint32(b, uint32(a.Flags&knownFlags)<<qpnBits|a.QPN&maxQPN)
	copy(b[offGID:AddressLen], a.GID[:])
}

// ParseAddress reads the first AddressLen bytes of b. The error is ErrShort.
func ParseAddress(b []byte) (Address, error) {
	if len(b) < AddressLen {
		return Address{}, ErrShort
	}
	first := binary.BigEndian.Uint32(b)
	return Address{
		Flags: Flags(first>>qpnBits) & knownFlags, QPN: first & maxQPN,
		GID: wire.GID(b[offGID:AddressLen]),
	}, nil
}

// String is the address as ip-link(8) prints it: 20 bytes with colons between them.
func (a Address) String() string {
	var b [AddressLen]byte
	a.Put(b[:])
	var s strings.Builder
	for i, v := range b {
		if i > 0 {
			s.WriteByte(':')
		}
		s.WriteString(hex.EncodeToString([]byte{v}))
	}
	return s.String()
}

// AddressOf reads what String prints. The error wraps ErrFormat.
func AddressOf(text string) (Address, error) {
	parts := strings.Split(text, ":")
	var b [AddressLen]byte
	if len(parts) != len(b) {
		return Address{}, fmt.Errorf("%w: %q has %d bytes, an address 20", ErrFormat, text,
			len(parts))
	}
	for i, part := range parts {
		v, err := hex.DecodeString(part)
		if err != nil || len(v) != 1 {
			return Address{}, fmt.Errorf("%w: %q is no byte of an address", ErrFormat, part)
		}
		b[i] = v[0]
	}
	return ParseAddress(b[:])
}

// InterfaceID is the lower half of IPv6 addresses of a port, made of its GUID, which is an EUI-64
// (RFC 4391 section 8): with the bit set that says so, whether the GUID has it or not.
func InterfaceID(guid uint64) uint64 { return guid | 1<<57 }
