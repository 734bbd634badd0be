package mem

import (
	"errors"
	"fmt"

	"xroce/roce/handle"
)

// Errors of Register.
var (
	ErrNoDomain = errors.New("mem: a region needs a protection domain")
	ErrAccess   = errors.New("mem: access flags are not valid")
	ErrRange    = errors.New("mem: the region would wrap around the address space")
)

// keyIndexBits is the part of a key that finds the region; the other 8 bits
// are the variant, which must match (IBA 10.6.3.4).
const keyIndexBits = 24

// Keys are all memory keys of one device.
type Keys struct {
	regions *handle.Table[Region]
	rand    handle.Rand
}

// NewKeys returns an empty set of keys that draws them from rand.
func NewKeys(rand handle.Rand) *Keys {
	// Index 0 is left out, so that no key is 0: a forgotten key never fits.
	return &Keys{handle.New[Region](1, 1<<keyIndexBits-1, rand), rand}
}

// Register makes a region of b, whose bytes stay in place and must not be
// freed before Deregister. Its address is that of the memory. REMOTE_WRITE and
// REMOTE_ATOMIC need LOCAL_WRITE, as in ibv_reg_mr. An empty b is allowed: its
// region grants nothing but zero-length accesses.
func (k *Keys) Register(d *Domain, b []byte, access Access) (*Region, error) {
	return k.RegisterAt(d, b, address(b), access)
}

// RegisterAt is Register with the address of the first byte chosen by the
// caller (ibv_reg_mr_iova).
func (k *Keys) RegisterAt(d *Domain, b []byte, addr uint64, access Access) (*Region, error) {
	switch {
	case d == nil:
		return nil, ErrNoDomain
	case access&^accessKnown != 0:
		return nil, fmt.Errorf("%w: %s", ErrAccess, access)
	case access&(RemoteWrite|RemoteAtomic) != 0 && access&LocalWrite == 0:
		return nil, fmt.Errorf("%w: %s needs LOCAL_WRITE", ErrAccess, access)
	case addr+uint64(len(b)) < addr:
		return nil, fmt.Errorf("%w: %d bytes at %#x", ErrRange, len(b), addr)
	}
	return k.regions.Insert(func(index uint32) *Region {
		key := index<<8 | uint32(k.rand.Uint64()&0xff)
		return &Region{d, key, addr, access, b}
	})
}

// Deregister takes the region's key out of use and reports whether it was in
// use. A queue may still be copying: see the package comment.
func (k *Keys) Deregister(r *Region) bool {
	if k.find(r.key) != r {
		return false
	}
	return k.regions.Delete(r.key >> 8)
}

// Len returns the number of regions.
func (k *Keys) Len() int { return k.regions.Len() }

// Check tells whether n bytes at addr may be accessed with the key.
func (k *Keys) Check(d *Domain, key uint32, addr uint64, n int, need Access) Fault {
	_, fault := k.resolve(d, key, addr, n, need)
	return fault
}

// Load copies len(dst) bytes from the region to dst, all or nothing.
func (k *Keys) Load(d *Domain, key uint32, addr uint64, dst []byte, need Access) Fault {
	src, fault := k.resolve(d, key, addr, len(dst), need)
	copy(dst, src)
	return fault
}

// Store copies src to the region, all or nothing.
func (k *Keys) Store(d *Domain, key uint32, addr uint64, src []byte, need Access) Fault {
	dst, fault := k.resolve(d, key, addr, len(src), need)
	copy(dst, src)
	return fault
}

// find returns the region with exactly this key.
func (k *Keys) find(key uint32) *Region {
	if r := k.regions.Lookup(key >> 8); r != nil && r.key == key {
		return r
	}
	return nil
}

func (k *Keys) resolve(d *Domain, key uint32, addr uint64, n int, need Access) ([]byte, Fault) {
	r := k.find(key)
	switch {
	case r == nil:
		return nil, FaultNoKey
	case r.domain != d:
		return nil, FaultDomain
	case need&^r.access != 0:
		return nil, FaultRights
	}
	return r.slice(addr, n)
}
