package engine

import (
	"math"
	"sync"
	"sync/atomic"

	"xroce/engine/pager"
	"xroce/roce"
	"xroce/roce/mem"
)

// An MR is a registered memory region (struct ibv_mr). Its methods are safe for
// concurrent use.
type MR struct {
	core   *mem.Region
	device *Device

	mu     sync.Mutex // held while the region is changed or deregistered
	pd     *PD
	own    ownMemory
	number uint32 // in the registry
	// pdn is the number of pd, for Resources: whoever holds mu may wait for the
	// progress lock.
	pdn atomic.Uint32
	// odp is the paging of a region that was registered with it.
	odp *pager.Region
	// pool is what it is of, nil of most.
	pool *MRPool
}

// LKey returns the key for work requests.
func (m *MR) LKey() uint32 { return m.core.LKey() }

// RKey returns the key for the peer.
func (m *MR) RKey() uint32 { return m.core.RKey() }

// Addr returns the address by which work requests and the peer name the first
// byte.
func (m *MR) Addr() uint64 { return m.core.Addr() }

// Len returns the length in bytes, of a layout that of all its pieces.
func (m *MR) Len() uint64 { return m.core.Len() }

// Bytes returns the registered memory, nil of a region that has a layout or was made
// of addresses or of several slices.
func (m *MR) Bytes() []byte {
	if m.odp != nil && m.core.Access()&mem.OnDemand != 0 {
		return m.odp.Bytes()
	}
	return m.core.Bytes()
}

// Access returns the flags that the region has.
func (m *MR) Access() mem.Access { return m.core.Access() }

// PD returns the protection domain.
func (m *MR) PD() *PD {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.pd
}

// SGE names n bytes of the region, off bytes behind its beginning. One has no more than
// math.MaxUint32 bytes, which is more than a message may have: whoever asks for more, or
// for less than none, gets so many, and is refused where it is posted or used.
func (m *MR) SGE(off, n int) roce.SGE {
	length := uint32(min(uint64(n), math.MaxUint32))
	return roce.SGE{Addr: m.Addr() + uint64(off), Length: length, LKey: m.LKey()}
}

// Validate gives the region back a key after a peer's SEND with invalidate, or
// LOCAL_INV, took it out of use: the old one with other low 8 bits. The error is
// mem.ErrNotInvalidated when nobody did, mem.ErrNotRegistered after Deregister.
func (m *MR) Validate(variant uint8) error { return m.device.keys.Validate(m.core, variant) }
