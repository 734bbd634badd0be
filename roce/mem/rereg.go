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
// bytes, and for a region that has a layout unless the translation changes; ErrBusy
// while windows are bound to the region or layouts refer to it, since those were
// checked against what it was.
func (k *Keys) Reregister(r *Region, what Change, m Memory, d *Domain, access Access) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := r.now()
	switch {
	case !k.holds(&r.cell):
		return ErrNotRegistered
	case what == 0 || what&^changeKnown != 0:
		return fmt.Errorf("%w: flags %#x", ErrChange, uint8(what))
	case r.kind != kindRegion || !old.valid:
		return fmt.Errorf("%w: the key has no region of its own, or none that is valid", ErrChange)
	case what&ChangeTranslation == 0 && old.laid():
		return fmt.Errorf("%w: a layout was checked with its domain and rights", ErrChange)
	case r.users > 0:
		return ErrBusy
	}
	if what&ChangePD == 0 {
		d = old.domain
	}
	if what&ChangeAccess == 0 {
		access = r.Access()
	}
	if what&ChangeTranslation == 0 {
		m = old.memory()
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

// memory is what a view of a region was made of.
func (v *view) memory() Memory {
	m := Memory{Bytes: v.bytes, Addr: v.base, Sync: v.sync}
	if p, ok := v.space.(pagedSpace); ok {
		m.Pager, m.Start, m.Length = p.Pager, v.start, v.length
	}
	return m
}
