package engine

import (
	"fmt"

	"xroce/roce"
	"xroce/roce/mem"
)

// maxArena is the most bytes of one AllocMR: what is rounded up must be an int.
const maxArena = 1 << 46

// AllocMR registers n bytes of zeroed memory that the device allocates itself, on a
// page boundary and in huge pages where there are some (IBV_EXP_ACCESS_ALLOCATE_MR).
// Addr and Bytes tell where. Deregister, and nothing else, gives the memory back: the
// slice must not be touched afterwards. Closing the device leaves it, since the
// application may still read it.
//
// ON_DEMAND is for memory whose pages come and go, which this is not: the two
// together, as all that RegMR refuses, are mem.ErrAccess. n is above 0.
func (d *Device) AllocMR(pd *PD, n int, access mem.Access) (*MR, error) {
	switch {
	case n < 1 || n > maxArena:
		return nil, fmt.Errorf("%w: a region of %d bytes", roce.ErrInvalid, n)
	case access&(mem.OnDemand|mem.HugeTLB) != 0:
		return nil, fmt.Errorf("%w: ON_DEMAND of memory that the device allocates", mem.ErrAccess)
	}
	whole, huge, err := mapArena(n)
	if err != nil {
		return nil, err
	}
	m, err := d.RegMR(pd, whole[:n:n], access)
	if err != nil {
		_ = unmapArena(whole)
		return nil, err
	}
	m.own = ownMemory{whole: whole, huge: huge, free: func() error { return unmapArena(whole) }}
	return m, nil
}

// Huge reports whether the region is of huge pages that were reserved for it. Others
// may be of huge pages, too, which the kernel does not tell.
func (m *MR) Huge() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own.huge
}
