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
	// Guarded is for memory that others may take away while it is registered: a mapping of
	// a file that somebody cuts off. Work that comes to what is gone is refused then, where
	// SIGBUS would end the process, as it does for RegFile. It costs some ten nanoseconds an
	// access. Only Linux has it.
	Guarded bool
}

// memory is buf as memory of a region.
func (d *Device) memory(buf []byte, o MROptions) (mem.Memory, error) {
	m := mem.MemoryOf(buf, o.Access)
	if m.Sync = o.Sync; o.IOVA != 0 {
		m.Addr = o.IOVA
	}
	var err error
	if o.Guarded {
		m.Guard, err = d.paging.pager.Guard()
	}
	return m, err
}

// RegMR registers buf (ibv_reg_mr), which then can be named by address and key: any
// memory that is a slice, of Go, from mmap, or shared with other processes. It must
// not be freed or moved before Deregister; Go's own memory is not. Writing to it while
// a peer reads or writes it is a race, as with any RDMA. What others may take away needs
// MROptions.Guarded.
func (d *Device) RegMR(pd *PD, buf []byte, access mem.Access) (*MR, error) {
	return d.RegMRWith(pd, buf, MROptions{Access: access})
}

// RegMRWith is RegMR with options. The errors are mem.ErrAccess, mem.ErrRange,
// errors.ErrUnsupported, and roce.ErrInvalid for a PD that is closed or of another device.
func (d *Device) RegMRWith(pd *PD, buf []byte, o MROptions) (*MR, error) {
	m, err := d.memory(buf, o)
	if err != nil {
		return nil, err
	}
	return d.register(pd, m, o.Access)
}

// RegSG registers slices that are laid end to end under one key (ib_map_mr_sg of the kernel), of
// which those without bytes are nothing, and RegMR says the rest. Its addresses are offsets from 0
// on. Where RegIndirect makes a key of other keys, that can change, this has one key in all. The
// errors are those of RegMRWith, and mem.ErrEntries for too many.
func (d *Device) RegSG(pd *PD, slices [][]byte, access mem.Access) (*MR, error) {
	return d.register(pd, mem.Memory{Slices: slices}, access)
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
// RegFile stays all the same until Deregister or ReregAlloc, and may be part of buf or come
// back.
//
// A message that is under way, in either direction, is refused when it comes to the
// region again: it is never made of both. So is a peer's READ that is asked for again.
//
// With an error the region is as it was: mem.ErrChange for flags that are none or
// unknown, for no bytes and for an invalidated region, ErrBusy and mem.ErrBusy while windows are
// bound to it or layouts refer to it, mem.ErrAccess, roce.ErrInvalid for a PD that is
// closed or of another device, mem.ErrNotRegistered after Deregister. The error says
// which argument it is about.
func (m *MR) Rereg(what mem.Change, buf []byte, pd *PD, access mem.Access) error {
	return m.ReregWith(what, buf, pd, MROptions{Access: access})
}

// ReregWith is Rereg with options: o.Access is what mem.ChangeAccess names, and all other
// options belong to the memory, which mem.ChangeTranslation names. Without it they are
// ignored, and the memory keeps its own. The errors are those of Rereg and RegMRWith.
func (m *MR) ReregWith(what mem.Change, buf []byte, pd *PD, o MROptions) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if what&mem.ChangeAccess == 0 {
		o.Access = m.core.Access()
	}
	next := buf
	if what&mem.ChangeTranslation == 0 {
		next, o = m.core.Bytes(), MROptions{Access: o.Access}
	}
	if m.own.forbids(next, o.Access) {
		return fmt.Errorf("%w: LOCAL_WRITE on memory that is mapped for reading",
			mem.ErrAccess)
	}
	memory, err := m.device.memory(buf, o)
	if err != nil {
		return err
	}
	if memory.Guard == nil {
		memory.Guard = m.own.guardOf(buf)
	}
	return m.change(what, pd, func(d *mem.Domain) error {
		return m.device.keys.Reregister(m.core, what, memory, d, o.Access)
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
		return busy(err)
	}
	if domain != nil {
		m.pd.release()
		m.pd = pd
		m.pdn.Store(pd.number)
	}
	m.quiesce()
	if what&mem.ChangeTranslation != 0 && m.odp != nil {
		m.device.forgetODP(m)
	}
	return nil
}
