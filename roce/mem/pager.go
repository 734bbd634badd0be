package mem

// A Pager is memory whose pages may be absent (on-demand paging): it knows which
// are present, and has the others brought in without waiting for them. It is safe
// for concurrent use, and its methods must not block, because the queue that calls
// them serves others too.
//
// Addresses are those of the process. Every method returns FaultPage when a page
// is absent that can be brought in, after it has asked for that; the same access
// succeeds some time later. Memory that is not there, or not writable, is
// FaultUnmapped.
type Pager interface {
	// Present reports whether the n bytes at addr are present, for writing if write. Of
	// many it looks at the first ones alone, as many as it likes to bring in at once.
	Present(addr, n uint64, write bool) Fault
	// Load copies from memory, and Store to it.
	Load(addr uint64, dst []byte) Fault
	Store(addr uint64, src []byte) Fault
	// Word calls op.Do with the word at addr, which is a multiple of 8, and x and y.
	Word(addr uint64, op WordOp, x, y uint64) (old uint64, f Fault)
}

// A pagedSpace is the address space of a pager; offsets in it are addresses.
type pagedSpace struct{ Pager }

func (p pagedSpace) load(off uint64, dst []byte) Fault  { return p.Load(off, dst) }
func (p pagedSpace) store(off uint64, src []byte) Fault { return p.Store(off, src) }

func (p pagedSpace) ready(off, n uint64, write bool) (looked uint64, f Fault) {
	return n, p.Present(off, n, write)
}

func (p pagedSpace) word(off uint64, op WordOp, x, y uint64) (old uint64, f Fault) {
	if off%wordSize != 0 {
		return 0, FaultMisaligned
	}
	return p.Word(off, op, x, y)
}
