package mem

import (
	"sync"
	"sync/atomic"

	"xroce/roce/internal/handle"
)

// The index is the part of a key that finds the region; the other 8 bits are
// the variant, which must match (IBA 10.6.3.4).
const (
	indexBits   = 24
	variantBits = 32 - indexBits
	variantMask = 1<<variantBits - 1
)

// Keys are all memory keys of one device. They are safe for concurrent use.
// Accesses take no lock; changes of keys exclude each other.
type Keys struct {
	cells *handle.Table[cell]
	rand  handle.Rand

	// mu is held by whoever puts another view into a cell, but for first ones.
	mu    sync.Mutex
	epoch epochCounter
	fence atomic.Uint32
	// deferred has a lock of its own, taken after mu.
	deferred writeBackers
	// anyDomain says that type 2 windows are of type 2A.
	anyDomain bool
	syncer    Syncer
}

// NewKeys returns an empty set of keys that draws them from rand, a source of
// unpredictable bits that package roce calls Rand.
func NewKeys(rand handle.Rand) *Keys {
	// Index 0 is left out, so that no key is 0: a forgotten key never fits.
	return &Keys{cells: handle.New[cell](1, 1<<indexBits-1, rand), rand: rand}
}

// Len returns the number of regions and windows.
func (k *Keys) Len() int { return k.cells.Len() }

// Epoch returns the present one, for Accessor.Since of a message that begins.
func (k *Keys) Epoch() Epoch { return k.epoch.now() }

// Check reports whether n bytes at addr may be accessed with the key. They may still
// be absent: see Ready.
func (k *Keys) Check(a Accessor, key uint32, addr uint64, n int, need Access) Fault {
	_, _, f := k.resolve(a, key, addr, n, need)
	return f
}

// Ready is Check, and reports whether the bytes can be accessed at once: FaultPage
// says that some are absent and have been asked for. Of more than a Pager brings in
// at once, and behind so many elements of a layout as Look looks at, the first ones count.
func (k *Keys) Ready(a Accessor, key uint32, addr uint64, n int, need Access) Fault {
	_, f := k.Look(a, key, addr, n, need)
	return f
}

// Look is Ready, and tells at how many of the bytes it looked, from the first on: all of
// them, but for a layout of more than 1024 elements, or of which more than 256 are absent.
// Who wants to know of all looks again behind those: the work of a call is bounded,
// because the queue that makes it serves others too.
func (k *Keys) Look(a Accessor, key uint32, addr uint64, n int, need Access) (looked int, f Fault) {
	v, off, f := k.resolve(a, key, addr, n, need)
	if f != OK {
		return 0, f
	}
	m, f := v.ready(off, uint64(n), need&writes != 0)
	return int(m), f
}

// Load copies len(dst) bytes from memory to dst, all or nothing.
func (k *Keys) Load(a Accessor, key uint32, addr uint64, dst []byte, need Access) Fault {
	v, off, f := k.resolve(a, key, addr, len(dst), need)
	if f != OK {
		return f
	}
	return v.load(off, dst)
}

// Store copies src to memory, all or nothing.
func (k *Keys) Store(a Accessor, key uint32, addr uint64, src []byte, need Access) Fault {
	v, off, f := k.resolve(a, key, addr, len(src), need)
	if f != OK {
		return f
	}
	return v.store(off, src)
}

// resolve returns the view of the key and the offset of n bytes at addr in it, if
// it grants the access to all of them.
func (k *Keys) resolve(a Accessor, key uint32, addr uint64, n int, need Access) (
	v *view, off uint64, f Fault,
) {
	v, f = k.grant(a, key, need)
	if f != OK {
		return nil, 0, f
	}
	off, f = v.within(addr, uint64(n))
	return v, off, f
}

// grant returns the view of exactly this key if it grants the access.
func (k *Keys) grant(a Accessor, key uint32, need Access) (*view, Fault) {
	c := k.cells.Lookup(key >> variantBits)
	if c == nil {
		return nil, FaultNoKey
	}
	v := c.view.Load()
	switch {
	case v.key != key:
		return nil, FaultNoKey
	case v.domain != a.Domain && v.domain != nil:
		return nil, FaultDomain
	case v.party != nil && v.party != a.Party:
		return nil, FaultParty
	case !v.valid:
		return nil, FaultInvalid
	case (need|needRead(need))&^v.access != 0:
		return nil, FaultRights
	case a.Since != 0 && v.born > a.Since:
		return nil, FaultChanged
	}
	return v, OK
}

// insert makes a cell with the first view of a key. The variant is random.
func (k *Keys) insert(c *cell, v *view) error {
	_, err := k.cells.Insert(func(index uint32) *cell {
		v.key = index<<variantBits | uint32(k.rand.Uint64()&variantMask)
		c.view.Store(v)
		return c
	})
	return err
}

// find returns the cell of exactly this key, nil when there is none.
func (k *Keys) find(key uint32) *cell {
	c := k.cells.Lookup(key >> variantBits)
	if c == nil || c.view.Load().key != key {
		return nil
	}
	return c
}

// contains reports whether the cell is that of a key, and was not removed.
func (k *Keys) contains(c *cell) bool {
	return k.cells.Lookup(c.view.Load().key>>variantBits) == c
}

// replace puts another view into a cell. The caller holds mu and has set all but
// when the view was born.
//
// The view comes first and its epoch after it, so a message of the new epoch sees
// the new view alone. One that begins in between has the old epoch and is refused as
// soon as it meets the new view: that may be one too many, never a mixture.
func (k *Keys) replace(c *cell, v *view) {
	k.writeBack()
	v.born = k.epoch.now() + 1
	c.view.Store(v)
	k.epoch.next()
}
