package mem

import (
	"errors"
	"fmt"
)

// A WindowType is the type of a memory window, with the values of enum
// ibv_mw_type.
type WindowType uint8

// The types of windows.
const (
	// WindowType1 is bound by the verb, may be bound again while it is bound, and
	// is for every queue pair of its protection domain.
	WindowType1 WindowType = 1
	// WindowType2 is bound by a work request, under a key whose low 8 bits the
	// application chooses, and is for the queue pair that bound it.
	WindowType2 WindowType = 2
)

// ErrWindow says that a window cannot be of this type.
var ErrWindow = errors.New("mem: not a window type")

// A Window is a memory window (MW): a key that can be bound to part of a region,
// with rights and bounds of its own, and taken away again (IBA 10.6.7). It is safe
// for concurrent use.
type Window struct{ cell }

// SetWindows2A makes type 2 windows those of type 2A: they are compared with the
// queue pair alone and not with the protection domain. A device has 2A or 2B, so
// this is to be called before the first window is allocated.
func (k *Keys) SetWindows2A() { k.anyDomain = true }

// Windows2A reports whether type 2 windows are of type 2A.
func (k *Keys) Windows2A() bool { return k.anyDomain }

// AllocWindow makes a window that is bound to nothing (ibv_alloc_mw). Its key
// grants nothing.
func (k *Keys) AllocWindow(d *Domain, t WindowType) (*Window, error) {
	if d == nil {
		return nil, ErrNoDomain
	}
	w := &Window{}
	switch t {
	case WindowType1:
		w.kind = kindWindow1
	case WindowType2:
		w.kind = kindWindow2
	default:
		return nil, fmt.Errorf("%w: %d", ErrWindow, t)
	}
	// Type 1 begins valid, with no bytes and no rights; type 2 begins free.
	if err := k.insert(&w.cell, &view{domain: d, home: d, valid: t == WindowType1}); err != nil {
		return nil, err
	}
	return w, nil
}

// DeallocWindow takes the window's key out of use for good (ibv_dealloc_mw), bound
// or not. The error is ErrNotRegistered when it was deallocated before. A queue may
// still be copying: see the package comment.
func (k *Keys) DeallocWindow(w *Window) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !k.contains(&w.cell) {
		return ErrNotRegistered
	}
	old := w.view.Load()
	k.cells.Delete(old.key >> variantBits)
	k.release(old)
	k.replace(&w.cell, &view{key: old.key, domain: old.home, home: old.home})
	return nil
}

// Type returns the type.
func (w *Window) Type() WindowType {
	if w.kind == kindWindow1 {
		return WindowType1
	}
	return WindowType2
}

// NextKey returns the key with the same index whose low 8 bits are the next
// (ibv_inc_rkey): a new key for the same window, under which the old one is dead.
func NextKey(key uint32) uint32 { return key&^variantMask | (key+1)&variantMask }

// RKey returns the present key.
func (w *Window) RKey() uint32 { return w.view.Load().key }

// Bound reports whether the window is bound to a region.
func (w *Window) Bound() bool { return w.view.Load().target != nil }

// Addr and Len tell what the window is bound to: the address of the first byte, as
// requests name it, and the number of bytes.
func (w *Window) Addr() uint64 { return w.view.Load().base }

// Len returns the length in bytes, 0 when the window is not bound.
func (w *Window) Len() uint64 { return w.view.Load().length }

// Access returns the rights of the window.
func (w *Window) Access() Access { return w.view.Load().access }
