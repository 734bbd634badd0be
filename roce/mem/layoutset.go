package mem

import (
	"errors"
	"fmt"
)

// ErrEntries says that a key cannot have so many entries.
var ErrEntries = errors.New("mem: entries of a layout")

// RegisterIndirect makes a key for layouts of up to maxEntries pieces or blocks. It
// grants nothing until it gets one, from Configure or ReregisterLayout, and again
// after it was invalidated. Its addresses are offsets from 0 on. The error is
// ErrNoDomain, or ErrEntries when maxEntries is not 1 to MaxEntries.
func (k *Keys) RegisterIndirect(d *Domain, maxEntries int) (*Region, error) {
	switch {
	case d == nil:
		return nil, ErrNoDomain
	case maxEntries < 1 || maxEntries > MaxEntries:
		return nil, fmt.Errorf("%w: %d are not 1 to %d", ErrEntries, maxEntries, MaxEntries)
	}
	r := &Region{cell: cell{kind: kindIndirect, entries: uint32(maxEntries)}}
	if err := k.insert(&r.cell, &view{domain: d, home: d}); err != nil {
		return nil, err
	}
	return r, nil
}

// ReregisterLayout gives a region or an indirect key a layout (what was proposed for
// verbs as ibv_rereg_mr_sg and ibv_rereg_mr_interleaved). From then on it is
// l.Len() bytes long; its address stays what it was, or is 0 with ZERO_BASED and of
// an indirect key. The region's own memory, or the layout that it had, is let go of:
// Reregister brings memory back. What must have ChangeTranslation; ChangePD and
// ChangeAccess are as in Reregister. With an error everything stays as it is.
//
// All that the layout names was looked at when this returns: keys are valid ones of
// regions or layouts, of the domain d, no more than MaxDepth layouts on top of each
// other, and not this one; every byte is inside its key; where access lets anybody
// write, the keys grant LOCAL_WRITE and the elements of a block do not overlap. No
// key needs to grant peers anything: what they may do is decided by access. Until
// the layout is gone these keys can be neither changed, invalidated nor
// deregistered.
//
// The error is ErrNotRegistered, ErrChange, ErrBusy for a key that windows are bound
// to or layouts refer to, ErrAccess, ErrEntries, or ErrLayout, which names the field.
func (k *Keys) ReregisterLayout(
	r *Region, what Change, l *Layout, d *Domain, access Access,
) error {
	var x laying
	for {
		done, err := k.reregisterPart(&x, r, what, l, d, access)
		if done || err != nil {
			return err
		}
	}
}

// reregisterPart does a part of ReregisterLayout, and reports whether it was the last.
func (k *Keys) reregisterPart(
	x *laying, r *Region, what Change, l *Layout, d *Domain, access Access,
) (done bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := r.now()
	switch {
	case !k.contains(&r.cell):
		return false, ErrNotRegistered
	case what&ChangeTranslation == 0 || what&^changeKnown != 0:
		return false, fmt.Errorf("%w: flags %#x of a layout", ErrChange, uint8(what))
	case r.kind == kindRegion && !old.valid:
		return false, fmt.Errorf("%w: the key was invalidated", ErrChange)
	}
	if what&ChangePD == 0 {
		d = old.domain
	}
	if what&ChangeAccess == 0 {
		access = r.Access() &^ (OnDemand | HugeTLB) // which are properties of the memory
	}
	return k.lay(x, l, layTarget{&r.cell, old, old.key, d, access})
}

// A UMR is what a user-mode memory registration gives an indirect key (a work request
// of mlx5; REG_MR in the kernel).
type UMR struct {
	Key    uint32 // of RegisterIndirect, as it is now
	NewKey uint32 // its next one, which may differ in the low 8 bits; 0 leaves it
	Layout *Layout
	Access Access
}

// Configure executes a UMR: it is ReregisterLayout of an indirect key, whose layout
// and access are replaced whether it is valid or not. But when the error is about the
// layout or the access, the key is left invalid, without a layout, so that nobody
// takes the old one for the new one. With ErrBusy it stays as it is, since others
// were checked against it.
func (k *Keys) Configure(a Accessor, u UMR) error {
	c := Configuration{UMR: u, By: a}
	for {
		if done, err := k.ConfigurePart(&c); done || err != nil {
			return err
		}
	}
}

// A Configuration is a UMR that is executed in parts.
type Configuration struct {
	UMR
	By Accessor

	laying laying
}

// ConfigurePart does a part of Configure, which looks at 1024 entries of the layout, and reports
// whether it was the last. An error ends it, too. Until then the key is what it was.
func (k *Keys) ConfigurePart(u *Configuration) (done bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.find(u.Key)
	if u.NewKey == 0 {
		u.NewKey = u.Key
	}
	switch {
	case c == nil || c.kind != kindIndirect:
		return false, fmt.Errorf("%w: key %#x: %s", ErrChange, u.Key, FaultNoKey)
	case (u.NewKey^u.Key)>>variantBits != 0:
		return false, fmt.Errorf("%w: new key %#x of key %#x: they may differ in the low 8 bits",
			ErrChange, u.NewKey, u.Key)
	case c.view.Load().domain != u.By.Domain:
		return false, fmt.Errorf("%w: key %#x: %s", ErrChange, u.Key, FaultDomain)
	}
	old := c.view.Load()
	done, err = k.lay(&u.laying, u.Layout, layTarget{c, old, u.NewKey, u.By.Domain, u.Access})
	if err != nil && c.users == 0 {
		k.release(old)
		k.replace(c, &view{key: old.key, access: old.access, domain: old.domain, home: old.home})
	}
	return done, err
}

// addSource adds the key of an entry, if it can be one.
func (k *Keys) addSource(s *layoutSpace, c *cell, e *entry, d *Domain, access Access) error {
	from := k.find(e.key)
	if from == nil || from.window() {
		return e.wrong("lkey", "%#x: %s", e.key, FaultNoKey)
	}
	v := from.view.Load()
	switch {
	case from == c:
		return e.wrong("lkey", "%#x is the key that gets the layout", e.key)
	case v.domain != d:
		return e.wrong("lkey", "%#x: %s", e.key, FaultDomain)
	case !v.valid:
		return e.wrong("lkey", "%#x: %s", e.key, FaultInvalid)
	case access&writes != 0 && v.access&LocalWrite == 0:
		return e.wrong("lkey", "%#x has no LOCAL_WRITE, which access %s needs", e.key, access)
	}
	inner, _ := v.space.(*layoutSpace)
	switch {
	case inner != nil:
		s.depth = max(s.depth, inner.depth+1)
		s.paged = s.paged || inner.paged
	case v.space != nil:
		s.paged = true
	}
	if s.depth > MaxDepth {
		return e.wrong("lkey", "%#x: that would be layouts %d deep, more than %d", e.key, s.depth,
			MaxDepth)
	}
	s.sources = append(s.sources, source{cell: from, view: v, inner: inner})
	return nil
}

// wrong is an error about a field of an entry.
func (e *entry) wrong(field, format string, args ...any) error {
	return fmt.Errorf("%w: %s[%d].%s %s", ErrLayout, e.name, e.at, field,
		fmt.Sprintf(format, args...))
}
