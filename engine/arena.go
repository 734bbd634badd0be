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
// Addr and Bytes tell where. Deregister or ReregAlloc, and nothing else, gives the memory
// back: the slice must not be touched afterwards. Closing the device leaves it, since the
// application may still read it.
//
// ON_DEMAND is for memory whose pages come and go, which this is not: the two
// together, as all that RegMR refuses, are mem.ErrAccess. n is above 0.
func (d *Device) AllocMR(pd *PD, n int, access mem.Access) (*MR, error) {
	own, err := newArena(n, access)
	if err != nil {
		return nil, err
	}
	m, err := d.RegMR(pd, own.whole[:n:n], access)
	if err != nil {
		_ = own.free()
		return nil, err
	}
	m.own = own
	return m, nil
}

// ReregAlloc is Rereg with n bytes of memory that the device allocates, as AllocMR does
// (ibv_exp_rereg_mr with IBV_EXP_ACCESS_ALLOCATE_MR). What must name mem.ChangeTranslation.
// What the region had mapped before by itself, be it by AllocMR, RegFile or ReregAlloc, is
// given back when no packet touches it any more: nobody else may use it then. With an error
// the region is as it was, and has what it had.
func (m *MR) ReregAlloc(what mem.Change, n int, pd *PD, access mem.Access) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what&mem.ChangeAccess == 0 {
		access = m.core.Access()
	}
	if what&mem.ChangeTranslation == 0 {
		return fmt.Errorf("%w: flags %#x of memory to be allocated", mem.ErrChange, uint8(what))
	}
	own, err := newArena(n, access)
	if err != nil {
		return err
	}
	err = m.change(what, pd, func(d *mem.Domain) error {
		memory := mem.MemoryOf(own.whole[:n:n], access)
		return m.device.keys.Reregister(m.core, what, memory, d, access)
	})
	if err != nil {
		_ = own.free()
		return err
	}
	before := m.own
	m.own = own
	return before.release()
}

// newArena maps n bytes for a region with these flags.
func newArena(n int, access mem.Access) (ownMemory, error) {
	switch {
	case n < 1 || n > maxArena:
		return ownMemory{}, fmt.Errorf("%w: a region of %d bytes", roce.ErrInvalid, n)
	case access&(mem.OnDemand|mem.HugeTLB) != 0:
		return ownMemory{}, fmt.Errorf("%w: ON_DEMAND of memory that the device allocates",
			mem.ErrAccess)
	}
	whole, huge, err := mapArena(n)
	if err != nil {
		return ownMemory{}, err
	}
	return ownMemory{
		whole: whole, huge: huge, free: func() error { return unmapArena(whole) },
	}, nil
}

// Huge reports whether the region is of huge pages that were reserved for it. Others
// may be of huge pages, too, which the kernel does not tell.
func (m *MR) Huge() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.own.huge
}
