package pager_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine/internal/pagertest"
	"xroce/engine/pager"
	"xroce/roce/mem"
)

// TestPrefetch: what was asked for with wait is there, what was asked for without comes.
func TestPrefetch(t *testing.T) {
	p := newPager(t)
	const pages = 200
	r, addr := regionOf(t, p, mapped(t, 2*pages, readWrite))
	first := pager.Range{Addr: addr, Length: pages * uint64(page)}
	second := pager.Range{Addr: addr + first.Length, Length: first.Length}
	must(t, r.Prefetch(first, true, true))
	if f := r.Present(first.Addr, first.Length, true); f != mem.OK {
		t.Errorf("prefetched memory: %s", f)
	}
	must(t, r.Prefetch(second, false, false))
	for r.Stats().PagePrefetch < 2*pages {
		must(t, r.Map(pager.Range{Addr: addr, Length: 0})) // no more than looking
	}
	if f := r.Present(second.Addr, second.Length, false); f != mem.OK {
		t.Errorf("memory prefetched in the background: %s", f)
	}
	must(t, r.Map(first))
	expectStats(t, r.Stats(), pager.Stats{PagePrefetch: 3 * pages})
	must(t, unix.Madvise(pagertest.Bytes(addr, pages*page), unix.MADV_DONTNEED))
	must(t, r.Map(first)) // which notices, and brings nothing in
	want := pager.Stats{
		PagePrefetch: 3 * pages, PageInvalidations: pages, PageInvalidationsHandled: 4,
	}
	expectStats(t, r.Stats(), want)
}

// TestPrefetchErrors are those of what cannot be brought in.
func TestPrefetchErrors(t *testing.T) {
	p := newPager(t)
	r, err := p.NewRegion(pager.RegionOptions{Range: pager.Implicit})
	must(t, err)
	f := newFile(t)
	must(t, f.Truncate(int64(page)))
	file := pager.AddressOf(mapFile(t, f, 2, readWrite))
	constant := pager.AddressOf(mapped(t, 1, unix.PROT_READ))
	size := uint64(page)
	for name, tt := range map[string]struct {
		s     pager.Range
		write bool
		want  error
	}{
		"nothing mapped":        {pager.Range{Addr: 0, Length: 1}, false, unix.ENOMEM},
		"no address":            {pager.Range{Addr: 1 << 63, Length: 1}, false, unix.ENOMEM},
		"behind a file":         {pager.Range{Addr: file, Length: 2 * size}, false, unix.EFAULT},
		"constant, for reading": {pager.Range{Addr: constant, Length: size}, false, nil},
		"constant, for writing": {pager.Range{Addr: constant, Length: size}, true, unix.EINVAL},
	} {
		if err := r.Prefetch(tt.s, tt.write, true); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
	}
	one, _ := regionOf(t, p, mapped(t, 3, readWrite)[page:2*page])
	for _, s := range []pager.Range{
		{Addr: one.Range().Addr - 1, Length: 2}, {Addr: one.Range().Addr + 1, Length: size},
	} {
		err, errMap := one.Prefetch(s, true, true), one.Map(s)
		if !errors.Is(err, unix.EFAULT) || !errors.Is(errMap, unix.EFAULT) {
			t.Errorf("%s, which the region does not have: %v, %v", s, err, errMap)
		}
	}
	r.Close()
	err = r.Prefetch(pager.Range{Addr: file, Length: 1}, false, true)
	if !errors.Is(err, pager.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if f := r.Present(file+size, 1, false); f != mem.FaultUnmapped {
		t.Errorf("an absent page after Close: %s", f)
	}
}

// TestQueueFull: more requests than there is room for are dropped, and made again.
func TestQueueFull(t *testing.T) {
	p := newPager(t)
	const pages = 2000
	b := mapped(t, pages, readWrite)
	r, addr := regionOf(t, p, b)
	left := make([]uint64, 0, pages/2)
	for i := range uint64(pages / 2) {
		left = append(left, addr+2*i*uint64(page)) // no two of them side by side
	}
	for len(left) > 0 {
		left = slices.DeleteFunc(left, func(at uint64) bool {
			return r.Present(at, 1, true) == mem.OK
		})
	}
	t.Logf("%d requests found no room", p.QueueFull())
	r.Close()
	if s := r.Stats(); s.PageFaults != pages/2 {
		t.Errorf("%d pages came, want %d", s.PageFaults, pages/2)
	}
}

// TestPrefetchGivesWay: however much advice waits, what an access needs finds room.
func TestPrefetchGivesWay(t *testing.T) {
	p := newPager(t)
	const n = 1 << 30
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ,
		unix.MAP_ANON|unix.MAP_PRIVATE|unix.MAP_NORESERVE)
	must(t, err)
	defer func() { must(t, unix.Munmap(b)) }()
	all, addr := regionOf(t, p, b)
	for range 1000 {
		must(t, all.Prefetch(pager.Range{Addr: addr, Length: n}, false, false))
	}
	before := p.QueueFull()
	if before == 0 {
		t.Error("there was room for all of the advice")
	}
	r, addr := regionOf(t, p, mapped(t, 1, readWrite))
	if f, _ := settle(func() mem.Fault { return r.Present(addr, 1, true) }); f != mem.OK {
		t.Errorf("a page: %s", f)
	}
	if n := p.QueueFull() - before; n != 0 {
		t.Errorf("an access found no room %d times", n)
	}
	all.Close()
}

// TestClosed: a pager that is closed makes no regions.
func TestClosed(t *testing.T) {
	var p pager.Pager
	r, err := p.NewRegion(pager.RegionOptions{Range: pager.Implicit})
	must(t, err)
	p.Close()
	p.Close()
	r.Close()
	r.Close()
	if _, err := p.NewRegion(pager.RegionOptions{}); !errors.Is(err, pager.ErrClosed) {
		t.Errorf("a region of a closed pager: %v", err)
	}
}

// TestHuge: only memory of huge pages is taken for such.
func TestHuge(t *testing.T) {
	const smaps = "7f0000000000-7f0000400000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)\n" +
		"Size:               4096 kB\nKernelPageSize:     2048 kB\nMMUPageSize:        2048 kB\n" +
		"7f0000400000-7f0000600000 rw-p 00000000 00:0f 1 /anon_hugepage (deleted)\n" +
		"KernelPageSize:     2048 kB\n" +
		"7f0000600000-7f0000800000 rw-p 00000000 00:00 0 \nKernelPageSize:        4 kB\n"
	const base, huge = uint64(0x7f0000000000), uint64(2 << 20)
	for name, tt := range map[string]struct {
		r  pager.Range
		ok bool
	}{
		"one mapping":       {pager.Range{Addr: base, Length: 2 * huge}, true},
		"two mappings":      {pager.Range{Addr: base + huge, Length: 2 * huge}, true},
		"small pages":       {pager.Range{Addr: base + 3*huge, Length: huge}, false},
		"and small ones":    {pager.Range{Addr: base + huge, Length: 3 * huge}, false},
		"not a whole page":  {pager.Range{Addr: base + 4096, Length: huge}, false},
		"half a page":       {pager.Range{Addr: base, Length: huge / 2}, false},
		"behind everything": {pager.Range{Addr: base + 8*huge, Length: huge}, false},
		"before everything": {pager.Range{Addr: base - huge, Length: 2 * huge}, false},
		"nothing":           {pager.Range{Addr: base, Length: 0}, false},
	} {
		if err := pager.HugeIn(strings.NewReader(smaps), tt.r); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
	p := newPager(t)
	b := mapped(t, 1024, readWrite)
	s := pager.Range{Addr: pager.AddressOf(b), Length: uint64(len(b))}
	_, err := p.NewRegion(pager.RegionOptions{Range: s, Huge: true})
	if !errors.Is(err, pager.ErrNotHuge) {
		t.Errorf("ordinary memory as huge: %v", err)
	}
}
