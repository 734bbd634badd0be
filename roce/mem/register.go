package mem

import (
	"errors"
	"fmt"
)

// Errors of registration, in the order of the checks.
var (
	ErrNoDomain     = errors.New("mem: a region needs a protection domain")
	ErrAccess       = errors.New("mem: access flags are not valid")
	ErrNotSupported = errors.New("mem: access flags are not supported")
	ErrRange        = errors.New("mem: the region would wrap around the address space")
)

// Register makes a region of b, whose bytes stay in place and must not be
// freed before Deregister. Its address is that of the memory. REMOTE_WRITE and
// REMOTE_ATOMIC need LOCAL_WRITE, as in ibv_reg_mr. An empty b is allowed: its
// region grants nothing but zero-length accesses.
//
// MW_BIND, ZERO_BASED, ON_DEMAND and HUGETLB are refused with ErrNotSupported.
// Flags that verbs calls optional and that are not known here are dropped.
func (k *Keys) Register(d *Domain, b []byte, access Access) (*Region, error) {
	return k.RegisterAt(d, b, address(b), access)
}

// RegisterAt is Register with the address of the first byte chosen by the
// caller (ibv_reg_mr_iova).
func (k *Keys) RegisterAt(d *Domain, b []byte, addr uint64, access Access) (*Region, error) {
	return k.RegisterPersistent(d, b, addr, access, nil)
}

// RegisterPersistent is RegisterAt for memory that outlasts a loss of power once
// sync has been called, such as a mapped file. Without sync, FLUSH_PERSISTENT is
// not valid.
func (k *Keys) RegisterPersistent(
	d *Domain, b []byte, addr uint64, access Access, sync Sync,
) (*Region, error) {
	if d == nil {
		return nil, ErrNoDomain
	}
	access &^= accessOptional &^ accessKnown
	if err := access.check(sync != nil); err != nil {
		return nil, err
	}
	if addr+uint64(len(b)) < addr {
		return nil, fmt.Errorf("%w: %d bytes at %#x", ErrRange, len(b), addr)
	}
	return k.regions.Insert(func(index uint32) *Region {
		key := index<<variantBits | uint32(k.rand.Uint64()&variantMask)
		r := &Region{domain: d, base: addr, access: access, bytes: b, sync: sync}
		r.state.Store(regionState(key, true))
		return r
	})
}

// check tells whether a region can have these flags.
func (a Access) check(persistent bool) error {
	switch {
	case a&^(accessKnown|accessLater) != 0:
		return fmt.Errorf("%w: %s", ErrAccess, a)
	case a&HugeTLB != 0 && a&OnDemand == 0:
		return fmt.Errorf("%w: %s needs ON_DEMAND", ErrAccess, a)
	case a&(RemoteWrite|RemoteAtomic) != 0 && a&LocalWrite == 0:
		return fmt.Errorf("%w: %s needs LOCAL_WRITE", ErrAccess, a)
	case a&FlushPersistent != 0 && !persistent:
		return fmt.Errorf("%w: %s needs memory that can be synced", ErrAccess, a)
	case a&accessLater != 0:
		return fmt.Errorf("%w: %s", ErrNotSupported, a&accessLater)
	}
	return nil
}
