package mem

import (
	"errors"
	"fmt"
)

// This file is about memory that its owner gives on: a part of a region under a key of its own,
// which may be of another protection domain, and what the owner does with a region by itself.

// ErrPart says that a part of a region cannot be had, or not with such rights.
var ErrPart = errors.New("mem: not a part of the region")

// part sets a view, which is empty, to Length bytes from Addr on of the region Of. The caller holds
// mu.
func (m *Memory) part(v *view, d *Domain, access Access) error {
	parent := m.Of.now()
	access &^= accessOptional &^ accessKnown
	switch err := access.check(&Memory{Addr: m.Addr}); {
	case d == nil:
		return ErrNoDomain
	case err != nil:
		return err
	case !parent.valid:
		return fmt.Errorf("%w: %s", ErrPart, FaultInvalid)
	case access&writes != 0 && parent.access&LocalWrite == 0:
		return fmt.Errorf("%w: access %s needs LOCAL_WRITE of the region", ErrPart, access)
	}
	off, f := parent.within(m.Addr, m.Length)
	if f != OK {
		return fmt.Errorf("%w: %d bytes at %#x: %s", ErrPart, m.Length, m.Addr, f)
	}
	*v = view{valid: true, access: access | localRead, domain: d, base: m.Addr}
	parent.part(off, m.Length, v)
	v.target = &m.Of.cell
	return nil
}

// retain counts a view as a user of the region that it is a part of. The caller holds mu.
func (v *view) retain() {
	if v.target != nil {
		v.target.users++
		v.target.shared = true
	}
}

// Hold keeps a region as it is until LetGo: meanwhile it can be neither changed, invalidated nor
// deregistered, with ErrBusy or FaultBusy, as one that a layout refers to. The n bytes at addr
// are then there for Load, and with write for Store. The error is ErrNotRegistered, or ErrPart for
// a key that is invalid, bytes that are not in the region, and a region without LOCAL_WRITE that is
// to be written.
func (k *Keys) Hold(r *Region, addr, n uint64, write bool) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	v := r.now()
	switch {
	case !k.contains(&r.cell):
		return ErrNotRegistered
	case !v.valid:
		return fmt.Errorf("%w: %s", ErrPart, FaultInvalid)
	case write && v.access&LocalWrite == 0:
		return fmt.Errorf("%w: the region has no LOCAL_WRITE", ErrPart)
	}
	if _, f := v.within(addr, n); f != OK {
		return fmt.Errorf("%w: %d bytes at %#x: %s", ErrPart, n, addr, f)
	}
	r.users++
	r.shared = true
	return nil
}

// LetGo ends a Hold.
func (k *Keys) LetGo(r *Region) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r.users--
}

// Steady reports whether n bytes at addr of a region that is held are always there: Load and Store
// do not fail then.
func (r *Region) Steady(addr, n uint64) bool {
	v := r.now()
	return v.steady(addr-v.base, n)
}

// Load copies bytes at addr of a region that is held to dst, all or nothing. The fault is one of
// memory that is not steady: FaultPage, FaultUnmapped, or FaultOutOfRange of what a pager does
// not allow.
func (r *Region) Load(addr uint64, dst []byte) Fault {
	v := r.now()
	return v.load(addr-v.base, dst)
}

// Store is Load the other way round, of a region that is held to be written.
func (r *Region) Store(addr uint64, src []byte) Fault {
	v := r.now()
	return v.store(addr-v.base, src)
}
