package pager

import (
	"golang.org/x/sys/unix"

	"xroce/roce/mem"
)

// Span is how much is looked at, and asked for, at once: what a READ or a WRITE is
// waiting for is present together.
const Span = 1 << 20

// A Region is part of the address space, as memory for mem.Keys. It is safe for
// concurrent use.
type Region struct {
	pager  *Pager
	span   Range
	allow  []Range // what alone may be accessed, nil for all of the range
	keep   []byte
	tally  tally
	seen   seen
	recent recent
	closed bool // guarded by pager.mu, as is what follows
	busy   int  // how many workers and calls of Prefetch are at the region
	failed [16]failure
}

var _ mem.Pager = (*Region)(nil)

// RegionOptions say what a region is.
type RegionOptions struct {
	Range Range
	// Allow are the only ranges that may be accessed, nil for all. An empty list that
	// is not nil allows nothing.
	Allow []Range
	// Keep is memory that is not to be freed before the region is closed, if the
	// range is one of Go's own.
	Keep []byte
	// Huge says that the range is made of huge pages alone.
	Huge bool
}

// NewRegion makes a region. Nothing of it is touched, and nothing needs to be mapped
// there, but for huge pages. The error is ErrRange, ErrNotHuge, ErrClosed, or that of
// Supported.
func (p *Pager) NewRegion(o RegionOptions) (*Region, error) {
	if err := Supported(); err != nil {
		return nil, err
	}
	r := &Region{pager: p, span: o.Range, keep: o.Keep}
	r.tally.device = &p.total
	if o.Allow != nil {
		var err error
		if r.allow, err = merge(o.Allow); err != nil {
			return nil, err
		}
	}
	if o.Huge {
		if err := checkHuge(o.Range); err != nil {
			return nil, err
		}
	}
	r.seen.init(o.Range.Addr, o.Range.Length)
	if err := p.start(); err != nil {
		return nil, err
	}
	return r, nil
}

// Range returns what the region covers.
func (r *Region) Range() Range { return r.span }

// Bytes returns the memory that it was made of, nil when it was made of addresses.
func (r *Region) Bytes() []byte { return r.keep }

// Stats returns what was counted.
func (r *Region) Stats() Stats { return r.tally.stats() }

// Present reports whether bytes are present: of more than Span the first ones.
func (r *Region) Present(addr, n uint64, write bool) mem.Fault {
	return r.look(addr, n, write)
}

// Load copies from memory.
func (r *Region) Load(addr uint64, dst []byte) mem.Fault {
	if f := r.look(addr, uint64(len(dst)), false); f != mem.OK {
		return f
	}
	return r.pager.met(copyFrom(addr, dst))
}

// Store copies to memory.
func (r *Region) Store(addr uint64, src []byte) mem.Fault {
	if f := r.look(addr, uint64(len(src)), true); f != mem.OK {
		return f
	}
	return r.pager.met(copyTo(addr, src))
}

// Word does an atomic operation.
func (r *Region) Word(addr uint64, op mem.WordOp, x, y uint64) (uint64, mem.Fault) {
	if f := r.look(addr, 8, true); f != mem.OK {
		return 0, f
	}
	old, f := operate(addr, op, x, y)
	return old, r.pager.met(f)
}

// vector is how many pages are asked about in one system call, those of one block: it
// costs hardly more than to ask about one.
const vector = 64

// look reports whether bytes can be accessed. What is absent it asks for.
func (r *Region) look(addr, n uint64, write bool) mem.Fault {
	switch {
	case n == 0:
		return mem.OK
	case addr >= addressLimit || n >= addressLimit:
		return mem.FaultUnmapped
	case r.allow != nil && !covers(r.allow, addr, n):
		return mem.FaultOutOfRange
	case r.recent.has(r.pager.clock.Load(), addr, n):
		return mem.OK
	}
	want := job{region: r, write: write}
	end := min(pageEnd(addr+n), pageOf(addr)+Span)
	for at := pageOf(addr); at < end; {
		stop := min(blockEnd(at), end)
		if !r.lookAt(at, stop, &want) {
			r.forget(at, stop)
			return mem.FaultUnmapped
		}
		at = stop
	}
	if want.end == 0 {
		return mem.OK
	}
	return r.pager.ask(want)
}

// lookAt looks at some pages of a block and adds those that are absent to what is wanted.
// It reports whether all are mapped.
func (r *Region) lookAt(at, stop uint64, want *job) bool {
	var vec [vector]byte
	// All of the block that is the region's; of more the caller knows nothing.
	from, to := blockEnd(at)-vector*pageSize, blockEnd(at)
	if r.span.Length < addressLimit {
		from = max(from, pageOf(r.span.Addr))
		to = min(to, pageEnd(r.span.Addr+r.span.Length))
	}
	errno := resident(from, vec[:(to-from)/pageSize])
	switch {
	case errno == 0:
		present := bitsOf(from, vec[:(to-from)/pageSize])
		r.seen.addBlock(from/pageSize, present)
		r.recent.learn(r.pager.clock.Load(), from/(vector*pageSize), present)
	case errno == unix.ENOMEM && (from < at || to > stop):
		from = at
		errno = resident(from, vec[:(stop-at)/pageSize])
	}
	if errno == unix.ENOMEM {
		r.note(at, vec[:(stop-at)/pageSize], false, &job{})
		return false
	}
	if errno != 0 {
		clear(vec[:]) // the kernel is short of memory: then nothing is known to be there
	}
	r.note(at, vec[(at-from)/pageSize:(stop-from)/pageSize], true, want)
	return true
}

// note takes what the kernel says of some pages, or that it does not know all of them, and
// adds those that are absent to what is wanted.
func (r *Region) note(at uint64, vec []byte, known bool, want *job) {
	gone := uint64(0)
	for i := range vec {
		page := at + uint64(i)*pageSize
		if known && vec[i]&1 != 0 {
			r.seen.add(page / pageSize)
			continue
		}
		// One that was seen may have come after the kernel was asked.
		if r.seen.has(page / pageSize) {
			if pagePresent(page) {
				continue
			}
			if r.seen.remove(page / pageSize) {
				gone++
			}
		}
		want.add(page)
	}
	if gone > 0 {
		r.tally.invalidated(gone)
	}
}

// prefetched notes pages that advice brought in. Others are noted when they are accessed.
func (r *Region) prefetched(first, end uint64) {
	for at := first; at < end; at += pageSize {
		r.seen.add(at / pageSize)
	}
	r.tally.prefetched((end - first) / pageSize)
}

// pagePresent reports whether one page is present now.
func pagePresent(page uint64) bool {
	var vec [1]byte
	return resident(page, vec[:]) == 0 && vec[0]&1 != 0
}

// bring brings pages in, a chunk at a time, and returns how many were absent. It stops
// when the region is closed, and at the first page that cannot be brought in.
func (r *Region) bring(first, end uint64, write bool) (at, pages uint64, errno unix.Errno) {
	var vec [vector]byte
	for at = first; at < end; {
		stop := min(at+vector*pageSize, end)
		some := vec[:(stop-at)/pageSize]
		clear(some)
		// Where not all is mapped this tells nothing, and the rest tells.
		resident(at, some)
		if errno = r.pager.populate(at, stop-at, write); errno != 0 {
			// Which page it was is not told.
			stop, some = at+pageSize, some[:1]
			if errno = r.pager.populate(at, pageSize, write); errno != 0 {
				return at, pages, errno
			}
		}
		for _, b := range some {
			pages += uint64(1 - b&1)
		}
		at = stop
		if r.pager.ended(r) {
			return at, pages, unix.ECANCELED
		}
	}
	return at, pages, 0
}

// A failure is a page that could not be brought in. The next try of the access is
// told, once, because other memory may be mapped there later.
type failure struct {
	page  uint64
	write bool
	until int64 // pager time; 0 of no failure
}

// failedIn reports whether a page in the range of a job could not be brought in. The
// caller holds pager.mu.
func (r *Region) failedIn(j *job, now int64) bool {
	for i := range r.failed {
		f := &r.failed[i]
		if f.until > now && j.first <= f.page && f.page < j.end && (j.write || !f.write) {
			*f = failure{}
			return true
		}
	}
	return false
}

// forget forgets failures in a range of which a part was unmapped: what is mapped there
// next is other memory.
func (r *Region) forget(first, end uint64) {
	r.pager.mu.Lock()
	defer r.pager.mu.Unlock()
	for i := range r.failed {
		if f := &r.failed[i]; first <= f.page && f.page < end {
			*f = failure{}
		}
	}
}

// fail remembers a page that could not be brought in. The caller holds pager.mu. Without
// room it does not, and the page is asked for again. An older failure is not replaced by
// it: else many accesses that wait could replace each other's, and none would be told.
func (r *Region) fail(page uint64, write bool, now int64) {
	for i := range r.failed {
		if f := &r.failed[i]; f.until <= now {
			*f = failure{page: page, write: write, until: now + int64(failureLasts)}
			return
		}
	}
}
