package mem

import "errors"

// Errors of Validate.
var (
	ErrNotRegistered  = errors.New("mem: the region is not registered")
	ErrNotInvalidated = errors.New("mem: the region was not invalidated")
)

// Invalidate takes a key out of use, as LOCAL_INV and SEND with invalidate do:
// every access with it gives FaultInvalid until Validate, and so does a second
// Invalidate. Memory is not touched. An access that another queue had already
// checked may still finish.
//
// Only a region registered with Invalidatable can be invalidated; others give
// FaultRights. The fault comes in the order of Check.
func (k *Keys) Invalidate(d *Domain, key uint32) Fault {
	r, f := k.grant(d, key, Invalidatable)
	if f != OK {
		return f
	}
	// The swap fails if somebody else was faster.
	if !r.state.CompareAndSwap(regionState(key, true), regionState(key, false)) {
		return FaultInvalid
	}
	return OK
}

// Validate makes a region that was invalidated valid again, under a new key: the
// old one with the variant, its low 8 bits, replaced (ib_update_fast_reg_key).
// With another variant the old key is of no use to whoever still has it. It is
// for the owner of the region; no peer can cause it. The region stays as it is
// when the error is ErrNotRegistered or ErrNotInvalidated.
func (k *Keys) Validate(r *Region, variant uint8) error {
	old := r.state.Load()
	key := uint32(old)&^variantMask | uint32(variant)
	switch {
	case k.regions.Lookup(key>>variantBits) != r:
		return ErrNotRegistered
	case old&stateValid != 0 || !r.state.CompareAndSwap(old, regionState(key, true)):
		return ErrNotInvalidated
	}
	return nil
}
