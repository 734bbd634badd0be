package mem

import "xroce/roce/handle"

// The index is the part of a key that finds the region; the other 8 bits are
// the variant, which must match (IBA 10.6.3.4).
const (
	indexBits   = 24
	variantBits = 32 - indexBits
	variantMask = 1<<variantBits - 1
)

// Keys are all memory keys of one device. They are safe for concurrent use.
type Keys struct {
	regions *handle.Table[Region]
	rand    handle.Rand
}

// NewKeys returns an empty set of keys that draws them from rand.
func NewKeys(rand handle.Rand) *Keys {
	// Index 0 is left out, so that no key is 0: a forgotten key never fits.
	return &Keys{handle.New[Region](1, 1<<indexBits-1, rand), rand}
}

// Deregister takes the region's key out of use and reports whether it was in
// use. A queue may still be copying: see the package comment.
func (k *Keys) Deregister(r *Region) bool {
	index := r.LKey() >> variantBits
	return k.regions.Lookup(index) == r && k.regions.Delete(index)
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

// grant returns the region with exactly this key if it grants the access.
func (k *Keys) grant(d *Domain, key uint32, need Access) (*Region, Fault) {
	r := k.regions.Lookup(key >> variantBits)
	if r == nil {
		return nil, FaultNoKey
	}
	state := r.state.Load()
	switch {
	case uint32(state) != key:
		return nil, FaultNoKey
	case r.domain != d:
		return nil, FaultDomain
	case state&stateValid == 0:
		return nil, FaultInvalid
	case need&^r.access != 0:
		return nil, FaultRights
	}
	return r, OK
}

// resolve returns the n bytes at addr if the region with this key grants the
// access to all of them.
func (k *Keys) resolve(d *Domain, key uint32, addr uint64, n int, need Access) ([]byte, Fault) {
	r, fault := k.grant(d, key, need)
	if fault != OK {
		return nil, fault
	}
	return r.slice(addr, n)
}
