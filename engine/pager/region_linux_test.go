package pager_test

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine/internal/pagertest"
	"xroce/engine/pager"
	"xroce/roce/mem"
)

// TestUntouched: pages of anonymous memory are absent until they were asked for, and are
// present from then on.
func TestUntouched(t *testing.T) {
	p := newPager(t)
	b := mapped(t, 8, readWrite)
	r, addr := regionOf(t, p, b)
	in, out := []byte("hello"), make([]byte, 5)
	at := addr + uint64(page) - 2 // two pages of it
	expect(t, p, "store", func() mem.Fault { return r.Store(at, in) }, mem.OK, true)
	expect(t, p, "load", func() mem.Fault { return r.Load(at, out) }, mem.OK, false)
	if !bytes.Equal(in, out) || !bytes.Equal(b[page-2:][:5], in) {
		t.Errorf("loaded %q, in memory is %q", out, b[page-2:][:5])
	}
	expect(t, p, "store again", func() mem.Fault { return r.Store(at, in) }, mem.OK, false)
	word := addr + 4*uint64(page)
	var old uint64
	add := func() (f mem.Fault) {
		old, f = r.Word(word, mem.FetchAddOp, 7, 0)
		return f
	}
	expect(t, p, "add", add, mem.OK, true)
	expect(t, p, "add again", add, mem.OK, false)
	if now := binary.NativeEndian.Uint64(b[4*page:]); old != 7 || now != 14 {
		t.Errorf("the second time the word was %d and is %d, want 7 and 14", old, now)
	}
	r.Close() // what is counted is counted then
	expectStats(t, r.Stats(), pager.Stats{PageFaults: 3, PageFaultsHandled: 2})
	expectStats(t, p.Stats(), r.Stats())
	count := uint64(0)
	for _, n := range p.Latency() {
		count += n
	}
	if count != 2 {
		t.Errorf("the histogram has %d faults, want 2", count)
	}
}

// TestAll asks for a range at once, of which no more than Span is brought in.
func TestAll(t *testing.T) {
	p := newPager(t)
	pages := 2 * pager.Span / page
	r, addr := regionOf(t, p, mapped(t, pages, readWrite))
	all := func() mem.Fault { return r.Present(addr, uint64(pages*page), true) }
	expect(t, p, "all", all, mem.OK, true)
	expect(t, p, "behind the span", func() mem.Fault {
		return r.Present(addr+pager.Span, 1, false)
	}, mem.OK, true)
	r.Close()
	want := pager.Stats{PageFaults: pager.Span/uint64(page) + 1, PageFaultsHandled: 2}
	expectStats(t, r.Stats(), want)
}

// TestInvalidations: pages that go away are noticed at the next access, whoever took them.
func TestInvalidations(t *testing.T) {
	for name, take := range map[string]struct {
		do    func(t *testing.T, b []byte)
		then  mem.Fault // of an access afterwards
		waits bool
	}{
		"madvise DONTNEED": {func(t *testing.T, b []byte) {
			must(t, unix.Madvise(b, unix.MADV_DONTNEED))
		}, mem.OK, true},
		"a hole in a file": {nil, mem.OK, true},
		"munmap": {func(t *testing.T, b []byte) {
			pagertest.Unmap(t, b)
		}, mem.FaultUnmapped, false},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPager(t)
			b := mapped(t, 4, readWrite)
			if take.do == nil {
				f := newFile(t)
				must(t, f.Truncate(int64(4*page)))
				b = mapFile(t, f, 4, readWrite)
				take.do = func(t *testing.T, b []byte) {
					must(t, unix.Fallocate(int(f.Fd()),
						unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(3*page)))
				}
			}
			r, addr := regionOf(t, p, b)
			data := bytes.Repeat([]byte{1}, 3*page)
			store := func() mem.Fault { return r.Store(addr, data) }
			expect(t, p, "before", store, mem.OK, true)
			take.do(t, b)
			expect(t, p, "after", store, take.then, take.waits)
			s := r.Stats()
			if s.PageInvalidations != 3 || s.PageInvalidationsHandled != 1 {
				t.Errorf("statistics are %+v, want 3 pages invalidated at once", s)
			}
		})
	}
}

// TestInvalidationsAcrossBlocks: pages that go away on both sides of what is looked at at
// once are noticed by one access, in two steps.
func TestInvalidationsAcrossBlocks(t *testing.T) {
	p := newPager(t)
	block := int(pagertest.Block)
	b := mapped(t, 2*block/page, readWrite)[block-page:][:3*page]
	r, addr := regionOf(t, p, b)
	data := make([]byte, len(b))
	store := func() mem.Fault { return r.Store(addr, data) }
	expect(t, p, "before", store, mem.OK, true)
	must(t, unix.Madvise(b, unix.MADV_DONTNEED))
	expect(t, p, "after", store, mem.OK, true)
	r.Close()
	expectStats(t, r.Stats(), pager.Stats{
		PageFaults: 6, PageFaultsHandled: 2,
		PageInvalidations: 3, PageInvalidationsHandled: 2,
	})
}

// TestMoved: memory that mremap moved is at its new address and nowhere else, and
// something else that is mapped at the old one is what is accessed there.
func TestMoved(t *testing.T) {
	p := newPager(t)
	b := mapped(t, 2, readWrite)
	addr := pager.AddressOf(b)
	r, err := p.NewRegion(pager.RegionOptions{Range: pager.Implicit})
	must(t, err)
	defer r.Close()
	store := func() mem.Fault { return r.Store(addr, []byte{7}) }
	expect(t, p, "store", store, mem.OK, true)
	aim := mapped(t, 2, readWrite)
	moved, err := unix.MremapPtr(pagertest.Pointer(addr), uintptr(2*page),
		pagertest.Pointer(pager.AddressOf(aim)), uintptr(2*page),
		unix.MREMAP_MAYMOVE|unix.MREMAP_FIXED)
	must(t, err)
	expect(t, p, "at the old address", store, mem.FaultUnmapped, false)
	one := make([]byte, 1)
	expect(t, p, "at the new address", func() mem.Fault {
		return r.Load(uint64(uintptr(moved)), one)
	}, mem.OK, false)
	if one[0] != 7 {
		t.Errorf("at the new address is %d, want 7", one[0])
	}
	if s := r.Stats(); s.PageInvalidations != 1 {
		t.Errorf("statistics are %+v, want one page invalidated", s)
	}
	f := newFile(t)
	_, err = f.WriteString("else")
	must(t, err)
	pagertest.MapAt(t, addr, page, unix.PROT_READ, unix.MAP_FIXED_NOREPLACE, f)
	settle(func() mem.Fault { return r.Load(addr, one) })
	if one[0] != 'e' {
		t.Errorf("what is mapped there now begins with %q", one[0])
	}
}

// TestNotThere: what cannot be brought in is an error, and no crash.
func TestNotThere(t *testing.T) {
	p := newPager(t)
	f := newFile(t)
	must(t, f.Truncate(int64(2*page)))
	file := mapFile(t, f, 8, readWrite)
	constant := mapped(t, 2, unix.PROT_READ)
	nothing := mapped(t, 2, unix.PROT_NONE)
	r, err := p.NewRegion(pager.RegionOptions{Range: pager.Implicit})
	must(t, err)
	defer r.Close()
	b := make([]byte, 8)
	load := func(addr uint64) func() mem.Fault {
		return func() mem.Fault { return r.Load(addr, b) }
	}
	store := func(addr uint64) func() mem.Fault {
		return func() mem.Fault { return r.Store(addr, b) }
	}
	at := pager.AddressOf(file)
	settle(load(at)) // it may be in the page cache already
	p.Idle()
	expect(t, p, "behind the end of a file", load(at+2*uint64(page)), mem.FaultUnmapped, true)
	expect(t, p, "store there", store(at+2*uint64(page)), mem.FaultUnmapped, true)
	must(t, f.Truncate(int64(3*page)))
	expect(t, p, "the file grew", load(at+2*uint64(page)), mem.OK, true)
	must(t, f.Truncate(0))
	expect(t, p, "the file was truncated", load(at), mem.FaultUnmapped, true)
	expect(t, p, "constant", load(pager.AddressOf(constant)), mem.OK, true)
	expect(t, p, "store to constant", store(pager.AddressOf(constant)), mem.FaultUnmapped, false)
	expect(t, p, "store to absent constant", store(pager.AddressOf(constant)+uint64(page)),
		mem.FaultUnmapped, true)
	expect(t, p, "no right", load(pager.AddressOf(nothing)), mem.FaultUnmapped, true)
	expect(t, p, "the zero page", load(0), mem.FaultUnmapped, false)
	expect(t, p, "the kernel", load(1<<63), mem.FaultUnmapped, false)
	expect(t, p, "no canonical address", load(1<<60), mem.FaultUnmapped, false)
	_, f0 := r.Word(pager.AddressOf(constant), mem.CompareSwapOp, 0, 1)
	if f0 != mem.FaultUnmapped {
		t.Errorf("swap in constant memory: %s", f0)
	}
}

// TestManyHoles: however many accesses wait for pages that cannot be had, and whatever
// their order, each learns of it: a peer that is told to try again must not be told so
// for ever.
func TestManyHoles(t *testing.T) {
	p := newPager(t)
	const holes = 30 // more than are remembered
	f := newFile(t)
	must(t, f.Truncate(int64(page)))
	r, addr := regionOf(t, p, mapFile(t, f, 2*holes, readWrite))
	left := make([]uint64, 0, holes)
	for i := range uint64(holes) {
		left = append(left, addr+(1+2*i)*uint64(page)) // no two of them side by side
	}
	for round := 0; len(left) > 0; round++ {
		if round == holes {
			t.Fatalf("%d of %d accesses still wait after %d tries each", len(left), holes, round)
		}
		left = slices.DeleteFunc(left, func(at uint64) bool {
			fault := r.Present(at, 1, true)
			p.Idle()
			return fault == mem.FaultUnmapped
		})
	}
}

// TestHoleUnmapped: that a page could not be had is forgotten when it is unmapped. It says
// nothing of what is mapped there next.
func TestHoleUnmapped(t *testing.T) {
	p := newPager(t)
	f := newFile(t)
	must(t, f.Truncate(int64(page)))
	b := mapFile(t, f, 2, readWrite)
	r, addr := regionOf(t, p, b)
	hole := func() mem.Fault { return r.Present(addr+uint64(page), 1, true) }
	if got := hole(); got != mem.FaultPage {
		t.Fatalf("behind the end of the file: %s", got)
	}
	p.Idle()
	pagertest.Unmap(t, b)
	if got := hole(); got != mem.FaultUnmapped {
		t.Fatalf("unmapped: %s", got)
	}
	pagertest.MapAt(t, addr, 2*page, readWrite, unix.MAP_FIXED_NOREPLACE, nil)
	expect(t, p, "mapped again", hole, mem.OK, true)
}

// TestAllowList: a region may name all and grant some of it.
func TestAllowList(t *testing.T) {
	p := newPager(t)
	b := mapped(t, 8, readWrite)
	addr, size := pager.AddressOf(b), uint64(page)
	r, err := p.NewRegion(pager.RegionOptions{Range: pager.Implicit, Allow: []pager.Range{
		{Addr: addr + 3*size, Length: size},
		{Addr: addr + size, Length: 2 * size},
		{Addr: addr + 6*size, Length: 8},
	}})
	must(t, err)
	defer r.Close()
	for _, tt := range []struct {
		off, n uint64
		want   mem.Fault
	}{
		{0, 8, mem.FaultOutOfRange},
		{size - 1, 2, mem.FaultOutOfRange},
		{size, 3 * size, mem.OK},
		{size, 3*size + 1, mem.FaultOutOfRange},
		{6 * size, 8, mem.OK},
		{6*size + 1, 8, mem.FaultOutOfRange},
	} {
		f, _ := settle(func() mem.Fault { return r.Present(addr+tt.off, tt.n, true) })
		if f != tt.want {
			t.Errorf("%d bytes at %d: %s, want %s", tt.n, tt.off, f, tt.want)
		}
	}
	// A list of nothing allows nothing, which is not what no list does.
	r, err = p.NewRegion(pager.RegionOptions{Range: pager.Implicit, Allow: []pager.Range{}})
	must(t, err)
	f, _ := settle(func() mem.Fault { return r.Present(addr, 1, false) })
	if f != mem.FaultOutOfRange {
		t.Errorf("an empty list: %s, want %s", f, mem.FaultOutOfRange)
	}
	for _, bad := range []pager.Range{{addr, 0}, {^uint64(0) - 1, 3}} {
		if _, err := p.NewRegion(pager.RegionOptions{Allow: []pager.Range{bad}}); err == nil {
			t.Errorf("%s is allowed", bad)
		}
	}
}

// TestNoAllocations: neither access nor fault allocates.
func TestNoAllocations(t *testing.T) {
	p := newPager(t)
	b := mapped(t, 4, readWrite)
	r, addr := regionOf(t, p, b)
	data := make([]byte, 3*page)
	settle(func() mem.Fault { return r.Store(addr, data) })
	if n := testing.AllocsPerRun(100, func() {
		if r.Load(addr, data) != mem.OK || r.Store(addr, data) != mem.OK ||
			r.Present(addr, uint64(len(data)), true) != mem.OK {
			t.Fatal("memory is absent")
		}
		_, _ = r.Word(addr, mem.FetchAddOp, 1, 0)
	}); n != 0 {
		t.Errorf("%v allocations an access", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		must(t, unix.Madvise(b, unix.MADV_DONTNEED))
		settle(func() mem.Fault { return r.Store(addr, data) })
	}); n != 0 {
		t.Errorf("%v allocations a fault", n)
	}
}

func BenchmarkLoad(b *testing.B) {
	var p pager.Pager
	defer p.Close()
	data := make([]byte, 4096)
	mem := make([]byte, 1<<20)
	for i := range mem {
		mem[i] = 1
	}
	p.SetTime(1)
	addr := pager.AddressOf(mem)
	r, err := p.NewRegion(pager.RegionOptions{
		Range: pager.Range{Addr: addr, Length: 1 << 20}, Keep: mem,
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		r.Load(addr+100, data)
	}
}
