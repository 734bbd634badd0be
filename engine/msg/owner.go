package msg

import (
	"errors"
	"sync"

	"xroce/engine"
)

// An owner is the regions of memory that several devices know, one of each.
type owner struct {
	regions []*engine.MR
}

// owners are those that nobody has: a message over several rails takes one at each end.
var owners = sync.Pool{New: func() any { return &owner{} }}

// together is Memory.Owner of what one stands for, nil for nothing yet, and of one more region.
func together(of any, more *engine.MR) any {
	switch of := of.(type) {
	case nil:
		return more
	case *owner:
		of.regions = append(of.regions, more)
		return of
	}
	o := owners.Get().(*owner)
	o.regions = append(o.regions, of.(*engine.MR), more)
	return o
}

// free deregisters what Memory.Owner stands for, which is not to be used any more: no packet
// touches the memory when it returns.
func free(of any) error {
	switch of := of.(type) {
	case *engine.MR:
		return of.Release()
	case *owner:
		return of.free()
	}
	return nil
}

// free deregisters them, and gives the owner back.
func (o *owner) free() error {
	var err error
	for i, mr := range o.regions {
		err = errors.Join(err, mr.Release())
		o.regions[i] = nil
	}
	o.regions = o.regions[:0]
	owners.Put(o)
	return err
}
