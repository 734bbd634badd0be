package mem

import "sync/atomic"

// A view is all that a key stands for at one time. It never changes: whatever
// happens to a key puts another view in the place of this one, so an access, which
// looks once, is made wholly under one of them.
type view struct {
	key    uint32
	valid  bool
	access Access
	born   Epoch   // when it took the place of another view; 0 of a first one
	domain *Domain // nil: of any domain (type 2A windows)
	home   *Domain // of a window: the one it was allocated in
	party  *Party  // nil: of any queue pair

	base   uint64 // the address by which requests name the first byte
	length uint64 // in bytes

	// The memory: length bytes from start on of a space, or without one these bytes.
	bytes []byte
	space space
	start uint64

	sync    Sync   // nil when the memory cannot be made persistent
	syncOff uint64 // where the view begins, in what sync counts
	target  *cell  // the region that a bound window is of
}

// A space is memory that is not one slice: it has to be asked for each access.
// Offsets and lengths were compared with the length of the view that has it.
type space interface {
	// ready reports whether n bytes from off on can be accessed at once, of many the
	// first ones alone, and how many it looked at. A fault of FaultPage goes away by
	// itself; others stay.
	ready(off, n uint64, write bool) (looked uint64, f Fault)
	// load and store copy, all or nothing but for memory that is taken away under
	// the copy.
	load(off uint64, dst []byte) Fault
	store(off uint64, src []byte) Fault
	// word does op to the eight bytes at off, which need not be aligned.
	word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault)
}

// A cell is what a key's index leads to: its present view, and who depends on it.
type cell struct {
	view atomic.Pointer[view]
	kind kind
	// users are the windows bound to a region, and the layouts that have pieces in
	// it. It is guarded by Keys.mu.
	users   int
	shared  bool   // there were some
	entries uint32 // of an indirect key: how many entries its layout may have
}

// kind is what was registered.
type kind uint8

const (
	kindRegion   kind = iota // ibv_reg_mr
	kindIndirect             // a key for layouts
	kindWindow1              // IBV_MW_TYPE_1
	kindWindow2              // IBV_MW_TYPE_2
)

// window reports whether the cell is a memory window.
func (c *cell) window() bool { return c.kind >= kindWindow1 }

// laid reports whether a layout puts the memory together.
func (v *view) laid() bool {
	_, ok := v.space.(*layoutSpace)
	return ok
}

// within returns the offset in the view of n bytes at addr.
func (v *view) within(addr, n uint64) (off uint64, f Fault) {
	// The subtraction wraps for an address below the base, which makes the
	// offset too large; the second comparison cannot overflow.
	off = addr - v.base
	if off > v.length || n > v.length-off {
		return 0, FaultOutOfRange
	}
	return off, OK
}

// ready reports whether n bytes from off on can be accessed at once, of many the first
// ones alone, and how many it looked at.
func (v *view) ready(off, n uint64, write bool) (looked uint64, f Fault) {
	if v.space == nil {
		return n, OK
	}
	return v.space.ready(v.start+off, n, write)
}

// load copies from the memory, off bytes into the view.
func (v *view) load(off uint64, dst []byte) Fault {
	if v.space == nil {
		copy(dst, v.bytes[off:])
		return OK
	}
	return v.space.load(v.start+off, dst)
}

// store copies to the memory, off bytes into the view.
func (v *view) store(off uint64, src []byte) Fault {
	if v.space == nil {
		to := v.bytes[off:][:len(src)]
		held := beginStore(to)
		copy(to, src)
		endStore(held)
		return OK
	}
	return v.space.store(v.start+off, src)
}

// word does op to the eight bytes at off.
func (v *view) word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault) {
	if v.space == nil {
		w := word(v.bytes[off:][:wordSize])
		if w == nil {
			return 0, FaultMisaligned
		}
		return op.Do(w, x, y), OK
	}
	return v.space.word(v.start+off, op, x, y)
}

// part returns the view's memory from off on as memory of another view.
func (v *view) part(off, n uint64, to *view) {
	to.length, to.sync, to.syncOff = n, v.sync, v.syncOff+off
	if v.space == nil {
		to.bytes = v.bytes[off:][:n:n]
		return
	}
	to.space, to.start = v.space, v.start+off
}
