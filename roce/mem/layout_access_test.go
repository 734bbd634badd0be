package mem

import (
	"bytes"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
)

// TestLayoutsAllocateNothing an access, at any depth.
func TestLayoutsAllocateNothing(t *testing.T) {
	s := newStand(t)
	r := s.region(1<<12, 0, rw)
	for range MaxDepth / 2 {
		r = s.indirect(s.pattern([]uint64{16, r.Len() / 32},
			Block{LKey: r.LKey(), Bytes: 1, Strides: []uint64{2, 32}}), rw)
		r = s.indirect(s.list(Piece{0, r.Len() - 1, r.LKey()}, Piece{0, 1, r.LKey()}), rw)
	}
	b := make([]byte, r.Len())
	if n := testing.AllocsPerRun(100, func() {
		f := s.Load(s.d.Local(), r.LKey(), 0, b, 0)
		if f == OK {
			f = s.Store(s.d.Local(), r.LKey(), 0, b, RemoteWrite)
		}
		if f != OK {
			t.Fatal(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestLayoutReplacedConcurrently reads and writes through layouts while they are
// replaced and the regions below them come and go: each access is made under one
// layout, and never of a region that is gone.
func TestLayoutReplacedConcurrently(t *testing.T) {
	s := newStand(t)
	const n, rounds = 256, 2000
	r, err := s.RegisterIndirect(s.d, n)
	if err != nil {
		t.Fatal(err)
	}
	var done atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			b := make([]byte, n)
			for !done.Load() {
				switch f := s.Load(s.d.Local(), r.LKey(), 0, b, 0); f {
				case OK:
					if bytes.Count(b, b[:1]) != n {
						t.Errorf("half of one and half of another: %v", b)
					}
				case FaultInvalid, FaultNoKey, FaultOutOfRange:
				default:
					t.Error(f)
				}
			}
		})
	}
	var last *Region
	for round := range rounds {
		// What is read is written before it is registered, so that only the keys are
		// raced for.
		mr, err := s.Register(s.d, bytes.Repeat([]byte{byte(round)}, 2*n), rw)
		if err != nil {
			t.Fatal(err)
		}
		l := s.pattern([]uint64{n},
			Block{LKey: mr.LKey(), Addr: mr.Addr(), Bytes: 1, Strides: []uint64{2}})
		if round%3 == 0 {
			l = s.list(Piece{mr.Addr(), n / 2, mr.LKey()}, Piece{mr.Addr() + n/2, n / 2, mr.LKey()})
		}
		if err := s.ReregisterLayout(r, relaid, l, nil, 0); err != nil {
			t.Fatal(err)
		}
		if last != nil {
			if err := s.Deregister(last); err != nil {
				t.Fatal(err)
			}
		}
		if last = mr; round%7 == 0 {
			if f := s.Invalidate(s.d.Local(), r.LKey()); f != OK {
				t.Fatal(f)
			}
		}
	}
	done.Store(true)
	wg.Wait()
}

// TestLayoutOfWhatIsGone: an access that found its key before that was changed does
// not follow it to a region that is gone.
func TestLayoutOfWhatIsGone(t *testing.T) {
	s := newStand(t)
	var pieces []Piece
	var regions []*Region
	for range few + 2 {
		mr := s.region(8, 0, rw)
		regions = append(regions, mr)
		pieces = append(pieces, Piece{0, 8, mr.LKey()})
	}
	for _, count := range []int{few, few + 2} { // all are looked at, or those that are needed
		r := s.indirect(s.list(pieces[:count]...), rw)
		old := r.now()
		if f := s.Invalidate(s.d.Local(), r.LKey()); f != OK {
			t.Fatal(f)
		}
		if f := old.load(8, make([]byte, 16)); f != OK {
			t.Errorf("nothing is gone yet: %s", f)
		}
		if err := s.Deregister(regions[2]); err != nil {
			t.Fatal(err)
		}
		if f := old.load(8, make([]byte, 16)); f != FaultInvalid {
			t.Error(f)
		}
		if f := old.store(8, make([]byte, 16)); f != FaultInvalid {
			t.Error(f)
		}
		if _, f := old.word(16, FetchAddOp, 1, 0); f != FaultInvalid {
			t.Error(f)
		}
		if _, f := old.ready(0, 0, true); f != OK && count > few {
			t.Error(f)
		}
		regions[2] = s.region(8, 0, rw)
		pieces[2].LKey = regions[2].LKey()
	}
}

// A pagedHeap is memory of which some pages are absent until they were asked for.
type pagedHeap struct {
	b      []byte
	absent map[uint64]bool // by page of 16 bytes
	asked  int
}

func (p *pagedHeap) Present(addr, n uint64, _ bool) Fault {
	f := OK
	for page := addr / 16; page <= (addr+n-1)/16; page++ {
		if p.absent[page] {
			delete(p.absent, page)
			p.asked++
			f = FaultPage
		}
	}
	return f
}

func (p *pagedHeap) Load(addr uint64, dst []byte) Fault {
	copy(dst, p.b[addr:])
	return p.Present(addr, uint64(len(dst)), false)
}

func (p *pagedHeap) Store(addr uint64, src []byte) Fault {
	copy(p.b[addr:], src)
	return p.Present(addr, uint64(len(src)), true)
}

func (p *pagedHeap) Word(addr uint64, op WordOp, x, y uint64) (uint64, Fault) {
	return op.Do(word(p.b[addr:]), x, y), OK
}

// TestLayoutOfAbsentPages: an access asks for all pages that it needs at once, and
// moves nothing before they are there.
func TestLayoutOfAbsentPages(t *testing.T) {
	s := newStand(t)
	_, b := words(32)
	p := &pagedHeap{b: b, absent: map[uint64]bool{0: true, 2: true, 4: true, 5: true}}
	mr, err := s.RegisterMemory(s.d,
		Memory{Pager: p, Start: 0, Length: 256, Addr: 0x1000}, rw|OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	solid := s.region(16, 0, rw)
	pattern := s.indirect(s.pattern([]uint64{4},
		Block{LKey: mr.LKey(), Addr: 0x1000, Bytes: 8, Strides: []uint64{32}}), rw)
	r := s.indirect(s.list(Piece{0, 16, solid.LKey()}, Piece{0, 32, pattern.LKey()}), rw)
	src := bytes.Repeat([]byte("x"), 48)
	if f := s.Ready(s.d.Local(), r.LKey(), 0, 16, LocalWrite); f != OK || p.asked != 0 {
		t.Errorf("%s for what is no page's", f)
	}
	if f := s.Store(s.d.Local(), r.LKey(), 0, src, LocalWrite); f != FaultPage || p.asked != 3 {
		t.Errorf("%s, %d pages asked for", f, p.asked)
	}
	if bytes.Contains(b, []byte("x")) || bytes.Contains(solid.Bytes(), []byte("x")) {
		t.Error("part of it was stored")
	}
	if f := s.Store(s.d.Local(), r.LKey(), 0, src, LocalWrite); f != OK || p.asked != 3 {
		t.Errorf("%s, %d pages asked for", f, p.asked)
	}
	if got := s.all(r); !bytes.Equal(got, src) || bytes.Count(b, []byte("x")) != 32 {
		t.Errorf("%s in %s", got, b)
	}
	if old, f := s.FetchAdd(s.d.Local(), r.RKey(), 24, 1); f != OK || old != 0x7878787878787878 {
		t.Errorf("%#x, %s", old, f)
	}
	l := s.list(Piece{0, 16, solid.LKey()})
	if err := s.ReregisterLayout(mr, ChangeTranslation, l, nil, 0); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if err := s.Deregister(r); err != nil {
		t.Fatal(err)
	}
	if err := s.Deregister(pattern); err != nil {
		t.Fatal(err)
	}
	// Its memory is on demand, a layout is not.
	err = s.ReregisterLayout(mr, ChangeTranslation, l, nil, 0)
	if err != nil || mr.Access() != rw {
		t.Errorf("%v, %s", err, mr.Access())
	}
}
