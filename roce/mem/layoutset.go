package mem

import (
	"errors"
	"fmt"
	"math/bits"
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
	k.mu.Lock()
	defer k.mu.Unlock()
	old := r.now()
	switch {
	case !k.contains(&r.cell):
		return ErrNotRegistered
	case what&ChangeTranslation == 0 || what&^changeKnown != 0:
		return fmt.Errorf("%w: flags %#x of a layout", ErrChange, uint8(what))
	case r.kind == kindRegion && !old.valid:
		return fmt.Errorf("%w: the key was invalidated", ErrChange)
	}
	if what&ChangePD == 0 {
		d = old.domain
	}
	if what&ChangeAccess == 0 {
		access = r.Access() &^ (OnDemand | HugeTLB) // which are properties of the memory
	}
	return k.lay(&r.cell, old.key, l, d, access)
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
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.find(u.Key)
	if u.NewKey == 0 {
		u.NewKey = u.Key
	}
	switch {
	case c == nil || c.kind != kindIndirect:
		return fmt.Errorf("%w: key %#x: %s", ErrChange, u.Key, FaultNoKey)
	case (u.NewKey^u.Key)>>variantBits != 0:
		return fmt.Errorf("%w: new key %#x of key %#x: they may differ in the low 8 bits",
			ErrChange, u.NewKey, u.Key)
	case c.view.Load().domain != a.Domain:
		return fmt.Errorf("%w: key %#x: %s", ErrChange, u.Key, FaultDomain)
	}
	err := k.lay(c, u.NewKey, u.Layout, a.Domain, u.Access)
	if err != nil && c.users == 0 {
		old := c.view.Load()
		k.release(old)
		k.replace(c, &view{key: old.key, access: old.access, domain: old.domain, home: old.home})
	}
	return err
}

// lay gives a cell a layout under a key. The caller holds mu.
func (k *Keys) lay(c *cell, key uint32, l *Layout, d *Domain, access Access) error {
	access &^= accessOptional &^ accessKnown
	switch err := access.check(&Memory{}); {
	case c.users > 0:
		return ErrBusy
	case err != nil:
		return err
	case d == nil:
		return ErrNoDomain
	case l == nil:
		return fmt.Errorf("%w: it is nil", ErrLayout)
	case c.kind == kindIndirect && l.count > int(c.entries):
		return fmt.Errorf("%w: %d, the key takes %d", ErrEntries, l.count, c.entries)
	}
	old := c.view.Load()
	v := &view{
		key: key, valid: true, access: access | localRead, domain: d, home: old.home,
		base: old.base, length: l.length,
	}
	if access&ZeroBased != 0 {
		v.base = 0
	}
	if v.base+v.length < v.base {
		return fmt.Errorf("%w: length %d at address %#x reaches beyond 2^64", ErrLayout, v.length,
			v.base)
	}
	space, err := k.resolveLayout(c, l, d, access)
	if err != nil {
		return err
	}
	for i := range space.sources {
		from := space.sources[i].cell
		from.users++
		from.shared = true
	}
	v.space = space
	k.release(old)
	k.replace(c, v)
	return nil
}

// resolveLayout finds the memory of a layout that cell c is to have.
func (k *Keys) resolveLayout(c *cell, l *Layout, d *Domain, access Access) (*layoutSpace, error) {
	s := &layoutSpace{
		depth: 1, length: l.length, period: l.period, repeat: l.repeat,
		lanes: make([]lane, len(l.entries)), ends: make([]uint64, len(l.entries)),
	}
	if l.period&(l.period-1) == 0 {
		s.shift = uint8(bits.TrailingZeros64(l.period))
	}
	known := map[uint32]uint32{} // sources by key
	end, at := uint64(0), uint32(0)
	for i := range l.entries {
		e := &l.entries[i]
		if i == 0 || s.sources[at].view.key != e.key {
			var ok bool
			if at, ok = known[e.key]; !ok {
				if err := k.addSource(s, c, e, d, access); err != nil {
					return nil, err
				}
				at = uint32(len(s.sources) - 1)
				known[e.key] = at
			}
		}
		v := s.sources[at].view
		off, f := v.within(e.addr, e.extent)
		switch {
		case f != OK:
			return nil, e.wrong("addr", "%#x and %d bytes from it: %s", e.addr, e.extent, f)
		case e.overlapping && access&writes != 0:
			return nil, e.wrong("strides", "elements overlap, and access %s lets them be written",
				access)
		}
		s.lanes[i] = lane{off: off, n: e.n, strides: e.strides, source: at}
		if v.space == nil {
			s.lanes[i].bytes = v.bytes[off:][:e.extent:e.extent]
		}
		end += e.n
		s.ends[i] = end
	}
	s.column = len(s.repeat) == 1 && len(s.lanes) == 1 && s.lanes[0].bytes != nil
	return s, nil
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
