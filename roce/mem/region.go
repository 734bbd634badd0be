package mem

// A Domain is a protection domain (PD): keys of one domain are of no use to
// queue pairs of another. Domains are compared by identity.
type Domain struct {
	// A PD must not be a zero-size object: two of those may share an address,
	// and then they would be one domain.
	_ byte
}

// A Region is a registered memory region (MR). Its fields do not change while
// it is registered, so it is safe for concurrent use; what the bytes hold is
// the business of those who access them.
type Region struct {
	domain *Domain
	key    uint32
	base   uint64
	access Access
	bytes  []byte
}

// Domain returns the protection domain.
func (r *Region) Domain() *Domain { return r.domain }

// LKey returns the key for work requests of the owner.
func (r *Region) LKey() uint32 { return r.key }

// RKey returns the key for the peer. As with rxe, it equals the LKey; what a
// peer may do is decided by the access rights.
func (r *Region) RKey() uint32 { return r.key }

// Addr returns the address of the first byte, by which requests name it.
func (r *Region) Addr() uint64 { return r.base }

// Len returns the length in bytes.
func (r *Region) Len() int { return len(r.bytes) }

// Access returns the rights that the region was registered with.
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
