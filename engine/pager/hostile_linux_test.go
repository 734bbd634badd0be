package pager_test

import (
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/engine/internal/pagertest"
	"xroce/engine/pager"
	"xroce/roce/mem"
)

// TestHostileOwner maps, protects, truncates and frees memory while others access it.
// Nothing crashes, and every access ends as one that memory has.
func TestHostileOwner(t *testing.T) {
	p := newPager(t)
	const pages = 16
	f := newFile(t)
	must(t, f.Truncate(int64(pages*page)))
	r, err := p.NewRegion(pager.RegionOptions{Range: pager.Implicit})
	must(t, err)
	place := mapped(t, pages, readWrite)
	addr := pager.AddressOf(place)
	replace := func(prot int, f *os.File) {
		pagertest.MapAt(t, addr, len(place), prot, unix.MAP_FIXED, f)
	}
	stop := make(chan struct{})
	var all sync.WaitGroup
	var clock atomic.Int64 // all of theirs, as SetTime wants it: it never goes back
	for i := range uint64(3) {
		all.Go(func() {
			rnd := rand.New(rand.NewPCG(i, 1))
			b := make([]byte, 2*page)
			for {
				select {
				case <-stop:
					return
				default:
				}
				p.SetTime(clock.Add(rnd.Int64N(1 << 16))) // some looks are old
				n := rnd.IntN(len(b))
				at := addr + uint64(rnd.IntN(len(place)-n))
				var fault mem.Fault
				switch rnd.IntN(3) {
				case 0:
					fault = r.Load(at, b[:n])
				case 1:
					fault = r.Store(at, b[:n])
				default:
					fault = r.Present(at, uint64(n), true)
				}
				if fault != mem.OK && fault != mem.FaultPage && fault != mem.FaultUnmapped {
					t.Errorf("an access gave %s", fault)
					return
				}
			}
		})
	}
	rnd := rand.New(rand.NewPCG(9, 9))
	happened := func() bool {
		s := r.Stats()
		return s.PageFaults > 0 && s.PageInvalidations > 0
	}
	for i := 0; i < 3000 || !happened() && i < 1<<20; i++ {
		switch rnd.IntN(7) {
		case 0:
			replace(readWrite, f)
		case 1:
			replace(readWrite, nil)
		case 2:
			pagertest.Unmap(t, place)
			replace(unix.PROT_NONE, nil)
		case 3:
			must(t, f.Truncate(int64(rnd.IntN(pages)*page)))
		case 4:
			must(t, f.Truncate(int64(pages*page)))
		case 5:
			rights := []int{unix.PROT_READ, unix.PROT_NONE, readWrite}
			must(t, unix.Mprotect(place, rights[rnd.IntN(len(rights))]))
		default:
			must(t, unix.Madvise(place, unix.MADV_DONTNEED))
		}
	}
	close(stop)
	all.Wait()
	r.Close()
	if !happened() {
		t.Errorf("nothing happened: %+v", r.Stats())
	}
}

// TestWithoutPopulate: kernels that do not know MADV_POPULATE are served by touching.
func TestWithoutPopulate(t *testing.T) {
	p := newPager(t)
	p.WithoutPopulate()
	b := mapped(t, 4, readWrite)
	r, addr := regionOf(t, p, b)
	data := []byte{1}
	store := func() mem.Fault { return r.Store(addr, data) }
	load := func() mem.Fault { return r.Load(addr+2*uint64(page), data) }
	expect(t, p, "store", store, mem.OK, true)
	expect(t, p, "load", load, mem.OK, true)
	f := newFile(t)
	must(t, f.Truncate(int64(page)))
	r2, at := regionOf(t, p, mapFile(t, f, 2, readWrite))
	expect(t, p, "behind the end of a file", func() mem.Fault {
		return r2.Load(at+uint64(page), data)
	}, mem.FaultUnmapped, true)
}

// TestOtherPanics: what is not a fault of the memory is not swallowed.
func TestOtherPanics(t *testing.T) {
	p := newPager(t)
	r, addr := regionOf(t, p, make([]byte, page))
	defer func() {
		if recover() == nil {
			t.Error("an operation that panics did not")
		}
	}()
	none := mapped(t, 1, unix.PROT_NONE) // of the caller, not of the region
	settle(func() mem.Fault { return r.Present(addr, 8, true) })
	r.Load(addr, none[:8])
}
