package mem

import "fmt"

// A Change is a set of what Reregister changes, with the values of enum
// ibv_rereg_mr_flags.
type Change uint8

// What Reregister can change.
const (
	ChangeTranslation Change = 1 << 0
	ChangePD          Change = 1 << 1
	ChangeAccess      Change = 1 << 2

	changeKnown = ChangeTranslation | ChangePD | ChangeAccess
)

// Reregister changes a region under its key (ibv_rereg_mr): its memory, its
// protection domain, its access flags, or any of them together. What the flags do
// not name is not looked at. The key stays as it is. With an error the region
// stays as it is too.
//
// A message that is under way ends with FaultChanged when it comes to the region
// again: it never has one part from before and one from after. A peer's READ that
// is repeated is checked anew and ends like that.
//
// The error is ErrChange for no flags or unknown ones, for a new translation of no
// bytes, for no domain, for a key that has layouts and for an invalidated one;
// ErrBusy while windows are bound to the region or layouts refer to it, since those
// were checked against what it was; ErrAccess and ErrRange as in RegisterMemory.
func (k *Keys) Reregister(r *Region, what Change, m Memory, d *Domain, access Access) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := r.now()
	switch {
	case !k.contains(&r.cell):
		return ErrNotRegistered
	case what == 0 || what&^changeKnown != 0:
		return fmt.Errorf("%w: flags %#x", ErrChange, uint8(what))
	case r.kind != kindRegion || !old.valid:
		return fmt.Errorf("%w: the key has no region of its own, or none that is valid", ErrChange)
	case old.target != nil:
		return fmt.Errorf("%w: it is a part of another region", ErrChange)
	case what&ChangeTranslation == 0 && old.laid():
		return fmt.Errorf("%w: a layout was checked with its domain and rights", ErrChange)
	case r.users > 0:
		return ErrBusy
	}
	switch {
	case what&ChangePD == 0:
		d = old.domain
	case d == nil:
		return fmt.Errorf("%w: no protection domain", ErrChange)
	}
	if what&ChangeAccess == 0 {
		access = r.Access()
	}
	if what&ChangeTranslation == 0 {
		m = old.memory()
		m.rebase(old.access, access)
	} else if len(m.Bytes) == 0 && m.Length == 0 {
		return fmt.Errorf("%w: a translation of no bytes", ErrChange)
	}
	v, err := m.view(d, access)
	if err != nil {
		return err
	}
	if what&ChangeTranslation == 0 {
		v.space, v.start, v.length = old.space, old.start, old.length
	} else {
		k.release(old)
	}
	v.key = old.key
	k.replace(&r.cell, v)
	return nil
}

// rebase gives memory the address that registration would have given it, where the
// flags say that its addresses become offsets or cease to be such.
func (m *Memory) rebase(was, is Access) {
	switch {
	case is&ZeroBased != 0:
		m.Addr = 0
	case was&ZeroBased == 0:
	case m.Pager != nil:
		m.Addr = m.Start
	default:
		m.Addr = address(m.Bytes)
	}
}

// memory is what a view of a region was made of.
func (v *view) memory() Memory {
	m := Memory{Bytes: v.bytes, Addr: v.base, Sync: v.sync}
	switch s := v.space.(type) {
	case pagedSpace:
		m.Pager, m.Start, m.Length = s.Pager, v.start, v.length
	case *guardedSpace:
		m.Guard = s.guard
	}
	return m
}
