package engine

import (
	"fmt"

	"xroce/roce/mem"
)

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
	if m.own.forbids(next, access) {
		return fmt.Errorf("%w: LOCAL_WRITE on memory that is mapped for reading",
			mem.ErrAccess)
	}
	memory := mem.MemoryOf(buf, access)
	memory.Guard = m.own.guardOf(buf)
	return m.change(what, pd, func(d *mem.Domain) error {
		return m.device.keys.Reregister(m.core, what, memory, d, access)
	})
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
