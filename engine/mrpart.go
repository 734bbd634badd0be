package engine

import (
	"xroce/roce/mem"
)

// RegPart gives n bytes at addr of a region a key more, for a domain that may be another one than
// the region's, with rights of its own: nothing is copied, mapped or pinned for it. The region may
// be of any sort: one with a layout, one with on-demand paging, also an implicit one. Its peers'
// rights do not matter, but where the key lets anybody write it must have LOCAL_WRITE. Addresses
// are those of the region. Until the key is released the region is not changed, invalidated or
// deregistered: ErrBusy, or mem.FaultBusy.
//
// The error is roce.ErrInvalid for a domain or a region of another device, mem.ErrNotRegistered of
// a region that was deregistered, mem.ErrPart or mem.ErrAccess.
func (p *MRPool) RegPart(of *MR, pd *PD, addr, n uint64, access mem.Access) (*MR, error) {
	return p.register(of.device, pd, mem.Memory{Of: of.core, Addr: addr, Length: n}, access)
}

// Hold keeps the region as it is until LetGo, and reports that n bytes at addr are in it, which may
// be written with write: it is ErrBusy meanwhile, as one that a layout refers to. It does not keep
// pages of a region with on-demand paging. The error is mem.ErrNotRegistered or mem.ErrPart.
func (m *MR) Hold(addr, n uint64, write bool) error {
	return m.device.keys.Hold(m.core, addr, n, write)
}

// LetGo ends a Hold, of which there is one for each.
func (m *MR) LetGo() { m.device.keys.LetGo(m.core) }

// Steady reports whether n bytes at addr of a region that is held are always there: not those of
// on-demand paging, and not those that others may take away.
func (m *MR) Steady(addr, n uint64) bool { return m.core.Steady(addr, n) }

// Load copies bytes of a region that is held, by the address that work requests name them by,
// without a work request. Steady ones can always be had. Of others the fault is mem.FaultPage when
// pages are absent, which are brought in then: the same call succeeds some time later;
// mem.FaultUnmapped, or mem.FaultOutOfRange of what ODPMemory.Allow does not have, stays.
func (m *MR) Load(addr uint64, dst []byte) mem.Fault { return m.core.Load(addr, dst) }

// Store is Load the other way round, of a region that is held to be written.
func (m *MR) Store(addr uint64, src []byte) mem.Fault { return m.core.Store(addr, src) }

// Of reports whether the region is of the device.
func (m *MR) Of(d *Device) bool { return m.device == d }
