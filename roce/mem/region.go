package mem

import "sync/atomic"

// A Domain is a protection domain (PD): keys of one domain are of no use to
// queue pairs of another. Domains are compared by identity.
type Domain struct {
	// A PD must not be a zero-size object: two of those may share an address,
	// and then they would be one domain.
	_ byte
}

// A Region is a registered memory region (MR). Apart from being invalidated and
// made valid again it does not change while it is registered, so it is safe for
// concurrent use; what the bytes hold is the business of those who access them.
type Region struct {
	domain *Domain
	base   uint64
	access Access
	bytes  []byte
	sync   Sync // nil when the memory cannot be made persistent

	// state is the key, and whether it is valid, in one word: nobody sees a new
	// key with the old validity.
	state atomic.Uint64
	fence atomic.Uint32
}

// stateValid is set in the state of a region whose key may be used; the key is
// the low 32 bits.
const stateValid = 1 << 32

// regionState is the state of a region with this key.
func regionState(key uint32, valid bool) uint64 {
	if valid {
		return stateValid | uint64(key)
	}
	return uint64(key)
}

// Domain returns the protection domain.
func (r *Region) Domain() *Domain { return r.domain }

// LKey returns the key for work requests of the owner. Validate changes it.
func (r *Region) LKey() uint32 { return uint32(r.state.Load()) }

// RKey returns the key for the peer. As with rxe, it equals the LKey; what a
// peer may do is decided by the access rights.
func (r *Region) RKey() uint32 { return r.LKey() }

// Valid tells whether the key may be used: not after it was invalidated.
func (r *Region) Valid() bool { return r.state.Load()&stateValid != 0 }

// Addr returns the address of the first byte, by which requests name it.
func (r *Region) Addr() uint64 { return r.base }

// Len returns the length in bytes.
func (r *Region) Len() int { return len(r.bytes) }

// Access returns the flags that the region was registered with, without those
// that verbs calls optional and this stack does not know.
func (r *Region) Access() Access { return r.access }

// Bytes returns the registered memory itself.
func (r *Region) Bytes() []byte { return r.bytes }

// slice returns n bytes at addr, nil and a fault when they are not all inside.
func (r *Region) slice(addr uint64, n int) ([]byte, Fault) {
	// The subtraction wraps for an address below the base, which makes the
	// offset too large; the second comparison cannot overflow.
	off := addr - r.base
	if off > uint64(len(r.bytes)) || uint64(n) > uint64(len(r.bytes))-off {
		return nil, FaultOutOfRange
	}
	return r.bytes[off : off+uint64(n)], OK
}
