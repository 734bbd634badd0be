package cm

import (
	"encoding/binary"
	"fmt"

	"xroce/engine"
	"xroce/roce"
)

// A Remote names memory of a peer: where it begins and the key that grants access. Who owns
// the memory makes one with RemoteOf and tells it, in private data (Setup.Private) for one.
type Remote struct {
	Addr uint64
	RKey uint32
}

// RemoteLen is the length in bytes of what Put writes.
const RemoteLen = 12

// RemoteOf names a region for the peer, from off bytes behind its beginning on. What the peer
// may do there is what the region and the queue pair (Setup.Access) allow.
func RemoteOf(mr *engine.MR, off uint64) Remote {
	return Remote{Addr: mr.Addr() + off, RKey: mr.RKey()}
}

// Add names the memory n bytes further on.
func (r Remote) Add(n uint64) Remote { return Remote{Addr: r.Addr + n, RKey: r.RKey} }

// Put writes the address and the key, big-endian, to b, which must have RemoteLen bytes.
func (r Remote) Put(b []byte) {
	binary.BigEndian.PutUint64(b, r.Addr)
	binary.BigEndian.PutUint32(b[8:], r.RKey)
}

// ParseRemote reads what Put wrote. What follows it, such as the zeros behind private data, is
// not looked at. The error is roce.ErrInvalid when b has fewer than RemoteLen bytes.
func ParseRemote(b []byte) (Remote, error) {
	if len(b) < RemoteLen {
		return Remote{}, fmt.Errorf("%w: %d bytes name no memory, %d do", roce.ErrInvalid, len(b),
			RemoteLen)
	}
	return Remote{
		Addr: binary.BigEndian.Uint64(b), RKey: binary.BigEndian.Uint32(b[8:]),
	}, nil
}
