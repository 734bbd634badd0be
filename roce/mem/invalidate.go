package mem

import "errors"

// Errors of changes to keys.
var (
	ErrNotRegistered  = errors.New("mem: the key is not registered")
	ErrNotInvalidated = errors.New("mem: the region was not invalidated")
	ErrChange         = errors.New("mem: the region cannot be changed like that")
)

// Invalidate takes a key out of use, as LOCAL_INV and SEND with invalidate do. A
// window of type 2 is free then and can be bound again; a region registered with
// Invalidatable waits for Validate, and a key for layouts for its next one. Every
// access with the key gives FaultInvalid, and so does a second Invalidate. Memory
// is not touched. An access that another queue had already checked may still
// finish.
//
// With a.Party it is the peer of that queue pair who asks, who may free its windows
// alone, and keys for layouts that are Invalidatable; the owner of the domain may
// free a window by any of its queue pairs, also when the one that bound it is gone.
// Other regions and windows of type 1 give FaultRights, regions that windows are
// bound to or layouts refer to FaultBusy. The fault comes in the order of Check.
func (k *Keys) Invalidate(a Accessor, key uint32) Fault {
	k.mu.Lock()
	defer k.mu.Unlock()
	c := k.find(key)
	if c == nil {
		return FaultNoKey
	}
	old := c.view.Load()
	domain := old.domain
	if a.Party == nil && c.window() {
		// A window of type 2A is for its queue pair whatever the domain, but that is
		// no right for the work requests of other domains.
		domain = old.home
	}
	switch {
	case domain != nil && domain != a.Domain:
		return FaultDomain
	case old.party != nil && a.Party != nil && old.party != a.Party:
		return FaultParty
	case !c.mayInvalidate(a, old):
		return FaultRights
	case !old.valid:
		return FaultInvalid
	case c.users > 0:
		return FaultBusy
	}
	v := *old
	if c.kind != kindRegion {
		k.release(old)
		v = view{key: old.key, access: old.access, domain: old.domain, home: old.home}
	}
	v.valid = false
	if c.window() {
		v.access, v.domain = 0, v.home
	}
	k.replace(c, &v)
	return OK
}

// mayInvalidate reports whether the key is one that the accessor may take out of use.
// What has a layout takes a new one without being invalidated, so the owner of a key
// for layouts loses nothing that only the flag would give.
func (c *cell) mayInvalidate(a Accessor, v *view) bool {
	switch {
	case c.kind == kindWindow2, c.kind == kindIndirect && a.Party == nil:
		return true
	}
	return c.kind != kindWindow1 && v.access&Invalidatable != 0
}

// Validate makes a region that was invalidated valid again, under a new key: the
// old one with the variant, its low 8 bits, replaced (ib_update_fast_reg_key).
// With another variant the old key is of no use to a peer that still has it. It is
// for the owner of the region; no peer can cause it. The region stays as it is
// when the error is ErrNotRegistered or ErrNotInvalidated.
func (k *Keys) Validate(r *Region, variant uint8) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	old := r.now()
	switch {
	case !k.contains(&r.cell):
		return ErrNotRegistered
	case old.valid || r.kind != kindRegion:
		return ErrNotInvalidated
	}
	v := *old
	v.key, v.valid = old.key&^variantMask|uint32(variant), true
	k.replace(&r.cell, &v)
	return nil
}
