package engine

import (
	"errors"
	"fmt"
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

	mu   sync.Mutex // held while the region is changed or deregistered
	pd   *PD
	free func() error // gives memory back that is the region's own, may be nil
	// constant is memory of the region's own that is mapped for reading: storing to it
	// would end the process.
	constant []byte
	huge     bool   // AllocMR: of huge pages
	number   uint32 // in the registry
	// pdn is the number of pd, for Resources: whoever holds mu may wait for the
	// progress lock.
	pdn atomic.Uint32
	// odp is the paging of a region that was registered with it.
	odp *pager.Region
}

// MROptions say how to register memory beyond what ibv_reg_mr does. The zero value
// is that.
type MROptions struct {
	Access mem.Access
	// IOVA is the address by which work requests and the peer name the first byte
	// (ibv_reg_mr_iova). 0 is the address of the memory, or with ZERO_BASED the
	// offset 0. It needs no alignment; but a word can be the target of an atomic only
	// where both addresses are multiples of 8.
	IOVA uint64
	// Sync makes a part of the memory outlast a loss of power, and so allows
	// FLUSH_PERSISTENT.
	Sync mem.Sync
}

// RegMR registers buf (ibv_reg_mr), which then can be named by address and key: any
// memory that is a slice, of Go, from mmap, or shared with other processes. It must
// not be freed or moved before Deregister; Go's own memory is not. Writing to it while
// a peer reads or writes it is a race, as with any RDMA.
func (d *Device) RegMR(pd *PD, buf []byte, access mem.Access) (*MR, error) {
	return d.RegMRWith(pd, buf, MROptions{Access: access})
}

// RegMRWith is RegMR with options. The errors are mem.ErrAccess, mem.ErrRange, and
// roce.ErrInvalid for a PD that is closed or of another device.
func (d *Device) RegMRWith(pd *PD, buf []byte, o MROptions) (*MR, error) {
	m := mem.MemoryOf(buf, o.Access)
	if m.Sync = o.Sync; o.IOVA != 0 {
		m.Addr = o.IOVA
	}
	return d.register(pd, m, o.Access)
}

// register registers memory of any sort.
func (d *Device) register(pd *PD, m mem.Memory, access mem.Access) (*MR, error) {
	if err := pd.retain(d); err != nil {
		return nil, err
	}
	region, err := d.keys.RegisterMemory(&pd.core, m, access)
	if err != nil {
		pd.release()
		return nil, err
	}
	r := &MR{core: region, device: d, pd: pd}
	r.pdn.Store(pd.number)
	d.registry.add(resourceMR, r, &r.number)
	return r, nil
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
// of addresses.
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

// SGE names n bytes of the region, off bytes behind its beginning.
func (m *MR) SGE(off, n int) roce.SGE {
	return roce.SGE{Addr: m.Addr() + uint64(off), Length: uint32(n), LKey: m.LKey()}
}

// Validate gives the region back a key after a peer's SEND with invalidate, or
// LOCAL_INV, took it out of use: the old one with other low 8 bits. The error is
// mem.ErrNotInvalidated when nobody did, mem.ErrNotRegistered after Deregister.
func (m *MR) Validate(variant uint8) error { return m.device.keys.Validate(m.core, variant) }

// Rereg changes the region under its keys (ibv_rereg_mr): with mem.ChangeTranslation
// its memory to buf, with mem.ChangePD its domain, with mem.ChangeAccess its flags, or
// any of them together. What the flags do not name is ignored. The keys stay as they
// are; the address becomes that of buf, or 0 with ZERO_BASED. When it returns without an
// error, no packet reads or writes the memory before any more. Memory of AllocMR and
// RegFile stays all the same until Deregister, and may be part of buf or come back.
//
// A message that is under way, in either direction, is refused when it comes to the
// region again: it is never made of both. So is a peer's READ that is asked for again.
//
// With an error the region is as it was: mem.ErrChange for flags that are none or
// unknown, for no bytes and for an invalidated region, mem.ErrBusy while windows are
// bound to it or layouts refer to it, mem.ErrAccess, roce.ErrInvalid for a PD that is
// closed or of another device, mem.ErrNotRegistered after Deregister. The error says
// which argument it is about.
func (m *MR) Rereg(what mem.Change, buf []byte, pd *PD, access mem.Access) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what&mem.ChangeAccess == 0 {
		access = m.core.Access()
	}
	next := buf
	if what&mem.ChangeTranslation == 0 {
		next = m.core.Bytes()
	}
	if access&mem.LocalWrite != 0 && overlap(next, m.constant) {
		return fmt.Errorf("%w: LOCAL_WRITE on memory that is mapped for reading",
			mem.ErrAccess)
	}
	return m.change(what, pd, func(d *mem.Domain) error {
		return m.device.keys.Reregister(m.core, what, mem.MemoryOf(buf, access), d, access)
	})
}

// overlap reports whether two pieces of memory have bytes in common.
func overlap(a, b []byte) bool {
	x, y := mem.MemoryOf(a, 0).Addr, mem.MemoryOf(b, 0).Addr
	return x < y+uint64(len(b)) && y < x+uint64(len(a))
}

// change re-registers the region by do, which gets the next domain, nil when that does
// not change, and then ends the paging of what the region no longer is. Memory of the
// region's own stays: the next may be part of it. The caller holds mu.
func (m *MR) change(what mem.Change, pd *PD, do func(*mem.Domain) error) error {
	var domain *mem.Domain
	if what&mem.ChangePD != 0 {
		if err := pd.retain(m.device); err != nil {
			return fmt.Errorf("re-registration of PD: %w", err)
		}
		domain = &pd.core
	}
	if err := do(domain); err != nil {
		if domain != nil {
			pd.release()
		}
		return err
	}
	if domain != nil {
		m.pd.release()
		m.pd = pd
		m.pdn.Store(pd.number)
	}
	m.device.quiesce()
	if what&mem.ChangeTranslation != 0 && m.odp != nil {
		m.device.forgetODP(m)
	}
	return nil
}

// Deregister takes the keys out of use. When it returns without an error, no packet
// reads or writes the memory any more; work requests that name it fail. It is
// idempotent, and waits for no peer and no work request. The error is mem.ErrBusy
// while a memory window is bound to the region or a layout refers to it: then nothing
// happened.
func (m *MR) Deregister() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch err := m.device.keys.Deregister(m.core); {
	case errors.Is(err, mem.ErrNotRegistered):
		return nil
	case err != nil:
		return err
	}
	m.device.registry.remove(resourceMR, m, m.number)
	m.pd.release()
	m.device.quiesce()
	if m.odp != nil {
		m.device.forgetODP(m)
	}
	if m.free == nil {
		return nil
	}
	return m.free()
}
