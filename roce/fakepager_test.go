package roce_test

import (
	"unsafe"

	"xroce/roce/mem"
)

// fakePage is the size of the pages in these tests: that of the smallest path MTU.
const fakePage = 256

// A fakePager is memory whose pages are absent as a test says.
type fakePager struct {
	buf  []byte
	base uint64
	// misses is how often each page is yet to be found absent, gone says that there is
	// no such page.
	misses []int
	gone   []bool
	asked  int
	looks  int // how often it was asked about memory
	// leave takes pages away at random, if it is not nil: it tells how often the page is
	// to be found absent from now on.
	leave func() int
}

func newFakePager(buf []byte, base uint64) *fakePager {
	n := (len(buf) + fakePage - 1) / fakePage
	return &fakePager{buf: buf, base: base, misses: make([]int, n), gone: make([]bool, n)}
}

// look finds the pages of n bytes at addr.
func (f *fakePager) look(addr, n uint64) (off uint64, fault mem.Fault) {
	off = addr - f.base
	f.looks++
	for p := off / fakePage; p*fakePage < off+n; p++ {
		if f.leave != nil && f.misses[p] == 0 {
			f.misses[p] = f.leave()
		}
		switch {
		case f.gone[p]:
			return 0, mem.FaultUnmapped
		case f.misses[p] > 0:
			f.misses[p]--
			f.asked++
			fault = mem.FaultPage
		}
	}
	return off, fault
}

func (f *fakePager) Present(addr, n uint64, _ bool) mem.Fault {
	_, fault := f.look(addr, n)
	return fault
}

func (f *fakePager) Load(addr uint64, dst []byte) mem.Fault {
	off, fault := f.look(addr, uint64(len(dst)))
	if fault == mem.OK {
		copy(dst, f.buf[off:])
	}
	return fault
}

func (f *fakePager) Store(addr uint64, src []byte) mem.Fault {
	off, fault := f.look(addr, uint64(len(src)))
	if fault == mem.OK {
		copy(f.buf[off:], src)
	}
	return fault
}

func (f *fakePager) Word(addr uint64, op mem.WordOp, x, y uint64) (uint64, mem.Fault) {
	off, fault := f.look(addr, 8)
	if fault != mem.OK {
		return 0, fault
	}
	return op.Do((*uint64)(unsafe.Pointer(&f.buf[off])), x, y), mem.OK
}
