package pager

import "sync/atomic"

// A leaf has a bit for each of so many neighbouring pages: 128 MiB with pages of 4 KiB.
const (
	leafBits  = 15
	leafPages = 1 << leafBits
	maxLeaves = 4096
	probes    = 8
)

// A seen set remembers which pages were present at the last look. It grows with the
// pages that were, to some 16 MiB at most; it forgets nothing, but may decline to learn.
// It is safe for concurrent use.
type seen struct {
	// slots are a hash table of leaves by their number, whose size is a power of two.
	slots []atomic.Pointer[leaf]
}

type leaf struct {
	number uint64
	words  [leafPages / 64]atomic.Uint64
}

// init makes room for the pages of n bytes at addr.
func (s *seen) init(addr, n uint64) {
	leaves := uint64(maxLeaves)
	if n < addressLimit && addr < addressLimit {
		// Neighbours never collide, so a region of few leaves has a place for each.
		leaves = min(leaves, (pageEnd(addr+n)/pageSize-1)>>leafBits-addr/pageSize>>leafBits+1)
	}
	slots := uint64(1)
	for slots < leaves {
		slots *= 2
	}
	s.slots = make([]atomic.Pointer[leaf], slots)
}

// find returns the leaf of a page, nil when there is none. With grow there is one, unless
// there is no room.
func (s *seen) find(page uint64, grow bool) *leaf {
	number := page >> leafBits
	for i := range uint64(min(probes, len(s.slots))) {
		slot := &s.slots[(number+i)&uint64(len(s.slots)-1)]
		l := slot.Load()
		if l == nil {
			if !grow {
				return nil
			}
			if l = (&leaf{number: number}); !slot.CompareAndSwap(nil, l) {
				l = slot.Load()
			}
		}
		if l.number == number {
			return l
		}
	}
	return nil
}

// has reports whether the page was present at the last look.
func (s *seen) has(page uint64) bool {
	l := s.find(page, false)
	return l != nil && l.words[page%leafPages/64].Load()&(1<<(page%64)) != 0
}

// add notes that a page is present.
func (s *seen) add(page uint64) { s.addBlock(page, 1<<(page%64)) }

// addBlock notes which pages are present of the 64 that a page is among.
func (s *seen) addBlock(page, present uint64) {
	l := s.find(page, present != 0)
	if l == nil {
		return
	}
	if w := &l.words[page%leafPages/64]; w.Load()|present != w.Load() {
		w.Or(present)
	}
}

// remove notes that a page is not present, and reports whether it was there before.
func (s *seen) remove(page uint64) bool {
	l, bit := s.find(page, false), uint64(1)<<(page%64)
	return l != nil && l.words[page%leafPages/64].And(^bit)&bit != 0
}
