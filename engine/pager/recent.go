package pager

import (
	"sync/atomic"
	"time"
)

// trust is for how long pages that were present are taken to be so still. A look is a
// system call, dearer than most copies that follow it; what streams through memory makes
// one a block, not one a packet.
const trust = int64(100 * time.Microsecond)

// blockEnd is the end of the block of pages that an address is in.
func blockEnd(addr uint64) uint64 { return addr - addr%(vector*pageSize) + vector*pageSize }

// recent remembers the last looks, a block in each place. It is safe for concurrent use.
type recent [8]struct {
	version atomic.Uint64 // odd while the rest changes
	until   atomic.Int64
	block   atomic.Uint64
	present atomic.Uint64 // a bit for each page
}

// has reports whether bytes of one block were all present a short while ago. Without a
// clock nothing is recent.
func (c *recent) has(now int64, addr, n uint64) bool {
	block := addr / (vector * pageSize)
	first, last := addr/pageSize, (addr+n-1)/pageSize
	e := &c[block%uint64(len(c))]
	version := e.version.Load()
	if now >= e.until.Load() || now == 0 || last/vector != block {
		return false
	}
	want := (uint64(2)<<(last-first) - 1) << (first % vector)
	same := e.block.Load() == block && e.present.Load()&want == want
	return same && version&1 == 0 && e.version.Load() == version
}

// bitsOf are the pages of one block that a look found present, of those from at on.
func bitsOf(at uint64, vec []byte) (present uint64) {
	for i, b := range vec {
		present |= uint64(b&1) << (at/pageSize%vector + uint64(i))
	}
	return present
}

// learn remembers a look at a block.
func (c *recent) learn(now int64, block, present uint64) {
	if now == 0 {
		return
	}
	e := &c[block%uint64(len(c))]
	version := e.version.Load()
	if version&1 != 0 || !e.version.CompareAndSwap(version, version+1) {
		return // somebody else's look is being noted
	}
	e.block.Store(block)
	e.present.Store(present)
	e.until.Store(now + trust)
	e.version.Store(version + 2)
}
