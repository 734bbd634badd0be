package mem

import "testing"

// A lookCounter is memory without end that counts the questions about it, and of which
// every byte is absent until it was asked for so many times.
type lookCounter struct {
	pagedHeap
	looks  int
	absent int
	misses int
	seen   map[uint64]int
}

func (l *lookCounter) Present(addr, n uint64, _ bool) Fault {
	l.looks++
	if l.seen[addr]++; l.seen[addr] <= l.misses {
		l.absent++
		return FaultPage
	}
	return OK
}

// TestLookIsBounded: one look at a layout asks about 1024 elements, or 256 that are absent,
// and tells how far it came; looks from there on see all, once each.
func TestLookIsBounded(t *testing.T) {
	const n, stride = 5000, 1 << 20
	for _, deep := range []bool{false, true} {
		for misses := range 2 {
			s := newStand(t)
			p := &lookCounter{seen: map[uint64]int{}, misses: misses}
			mr, err := s.RegisterMemory(s.d,
				Memory{Pager: p, Start: 1 << 20, Length: n * stride, Addr: 1 << 20}, rw|OnDemand)
			if err != nil {
				t.Fatal(err)
			}
			l, err := NewInterleaved([]uint64{n}, []Block{{
				LKey: mr.LKey(), Addr: 1 << 20, Bytes: 2, Strides: []uint64{stride},
			}})
			if err != nil {
				t.Fatal(err)
			}
			key := s.indirect(l, rw)
			if deep {
				key = s.indirect(s.list(Piece{0, 3, key.LKey()}, Piece{3, 2*n - 3, key.LKey()}), rw)
			}
			calls := 0
			for at := 0; at < 2*n; calls++ {
				before := p.looks
				looked, f := s.Look(s.d.Local(), key.LKey(), uint64(at), 2*n-at, LocalWrite)
				got := p.looks - before
				if f != OK && f != FaultPage || got > 1024 || p.absent > 256 || looked == 0 {
					t.Fatalf("%d misses: %d elements were looked at, %d were absent; %d bytes, %s",
						misses, got, p.absent, looked, f)
				}
				p.absent = 0
				if f == OK {
					at += looked
				}
			}
			most := (n+1023)/1024 + misses*(n+255)/256 + 2
			if calls > most || len(p.seen) < n {
				t.Errorf("%d misses: saw %d elements in %d calls, want %d in %d", misses,
					len(p.seen), calls, n, most)
			}
		}
	}
}

// TestLookIsBoundedOverPlainMemory: elements that lead to columns of plain memory are looked
// at, too, where a paged piece is among them.
func TestLookIsBoundedOverPlainMemory(t *testing.T) {
	const n = 10_000
	s := newStand(t)
	paged, err := s.RegisterMemory(s.d, Memory{
		Pager: &lookCounter{seen: map[uint64]int{}}, Start: 1 << 20, Length: 8, Addr: 1 << 20,
	}, rw|OnDemand)
	if err != nil {
		t.Fatal(err)
	}
	plain := s.region(16, 0, rw)
	column := func(rows uint64, from *Region) *Region {
		return s.indirect(s.pattern([]uint64{rows}, Block{
			LKey: from.LKey(), Addr: from.Addr(), Bytes: 8, Strides: []uint64{0},
		}), RemoteRead)
	}
	stacked := column(n, column(2, plain))
	all := s.indirect(s.list(Piece{1 << 20, 8, paged.LKey()}, Piece{0, 8 * n, stacked.LKey()}),
		RemoteRead)
	calls := 0
	for at := 0; at < 8*(n+1); calls++ {
		looked, f := s.Look(s.d.Local(), all.LKey(), uint64(at), 8*(n+1)-at, 0)
		if f != OK || looked == 0 || looked > 8*maxLook {
			t.Fatalf("looked at %d bytes of elements of 8: %s", looked, f)
		}
		at += looked
	}
	if calls < n/maxLook {
		t.Errorf("saw %d elements in %d calls", n, calls)
	}
}
