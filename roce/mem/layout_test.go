package mem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const (
	rw     = LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic
	relaid = ChangeTranslation | ChangeAccess
)

// A stand is keys of one domain.
type stand struct {
	*testing.T
	*Keys
	d *Domain
}

func newStand(t *testing.T) *stand { return &stand{t, newKeys(9), new(Domain)} }

// region registers n bytes at addr, of which byte i is i.
func (s *stand) region(n int, addr uint64, access Access) *Region {
	s.Helper()
	w := make([]uint64, (n+7)/8) // aligned
	b := bytesOf(w)[:n:n]
	for i := range b {
		b[i] = byte(i)
	}
	r, err := s.RegisterAt(s.d, b, addr, access)
	if err != nil {
		s.Fatal(err)
	}
	return r
}

// list and pattern are layouts that must be.
func (s *stand) list(pieces ...Piece) *Layout {
	s.Helper()
	l, err := NewList(pieces)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

func (s *stand) pattern(repeat []uint64, blocks ...Block) *Layout {
	s.Helper()
	l, err := NewInterleaved(repeat, blocks)
	if err != nil {
		s.Fatal(err)
	}
	return l
}

// indirect makes a key with a layout.
func (s *stand) indirect(l *Layout, access Access) *Region {
	s.Helper()
	r, err := s.RegisterIndirect(s.d, l.Entries())
	if err != nil {
		s.Fatal(err)
	}
	if err := s.ReregisterLayout(r, relaid, l, nil, access); err != nil {
		s.Fatal(err)
	}
	return r
}

// all loads all that a key stands for.
func (s *stand) all(r *Region) []byte {
	s.Helper()
	b := make([]byte, r.Len())
	if f := s.Load(s.d.Local(), r.LKey(), r.Addr(), b, 0); f != OK {
		s.Fatal(f)
	}
	return b
}

// TestLayoutDimensions: a block of a three-dimensional field, dimension 0 fastest,
// and broadcasts of one element to readers.
func TestLayoutDimensions(t *testing.T) {
	s := newStand(t)
	mr := s.region(4*5*6, 0, rw) // z, y, x
	r := s.indirect(s.pattern([]uint64{2, 3, 1, 2},
		Block{LKey: mr.LKey(), Addr: 31, Bytes: 2, Strides: []uint64{2, 6, 77, 30}}), rw)
	var want []byte
	for z := 1; z < 3; z++ {
		for y := range 3 {
			want = append(want, mr.Bytes()[z*30+y*6+1:][:4]...)
		}
	}
	if got := s.all(r); !bytes.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	same := s.indirect(s.pattern([]uint64{3, 2},
		Block{LKey: mr.LKey(), Addr: 7, Bytes: 2, Strides: []uint64{0, 1}}), RemoteRead)
	if got := s.all(same); !bytes.Equal(got, []byte{7, 8, 7, 8, 7, 8, 8, 9, 8, 9, 8, 9}) {
		t.Errorf("%v", got)
	}
}

// TestLayoutColumnDescriptorSize: a column of any length takes the same memory.
func TestLayoutColumnDescriptorSize(t *testing.T) {
	s := newStand(t)
	mr := s.region(1<<16, 0, rw)
	size := func(rows uint64) float64 {
		return testing.AllocsPerRun(20, func() {
			r := s.indirect(s.pattern([]uint64{rows},
				Block{LKey: mr.LKey(), Bytes: 1, Strides: []uint64{2}}), rw)
			if err := s.Deregister(r); err != nil {
				t.Fatal(err)
			}
			if len(r.now().space.(*layoutSpace).lanes) != 1 {
				t.Fatal("more than one entry")
			}
		})
	}
	if small, large := size(2), size(1<<15); large > small+1 {
		t.Errorf("%v allocations for 2 rows, %v for 32768", small, large)
	}
}

// TestLayoutUnalignedPieces lists pieces of every length and alignment, in several
// keys and out of order, one of them twice and one of nothing.
func TestLayoutUnalignedPieces(t *testing.T) {
	s := newStand(t)
	var pieces []Piece
	var want []byte
	for i := range 64 {
		mr := s.region(2*i+3, uint64(i)<<20|uint64(i), rw)
		off := uint64(i+1) % 3
		pieces = append(pieces, Piece{mr.Addr() + off, uint64(i), mr.LKey()})
		want = append(want, mr.Bytes()[off:][:i]...)
	}
	pieces = append(pieces, pieces[63], Piece{LKey: 0xbad, Addr: 1 << 60})
	want = append(want, want[len(want)-63:]...)
	slices.Reverse(pieces[:3])
	want = slices.Concat(want[1:3], want[:1], want[3:])
	if got := s.all(s.indirect(s.list(pieces...), 0)); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestLayoutManyEntries: lists of 4,096 and of 100,000 entries, looked up at every
// border.
func TestLayoutManyEntries(t *testing.T) {
	for _, entries := range []int{4096, 100_000} {
		s := newStand(t)
		mr := s.region(2*entries, 0, rw)
		pieces := make([]Piece, entries)
		for i := range pieces {
			pieces[i] = Piece{uint64(2 * (entries - 1 - i)), 2, mr.LKey()}
		}
		r := s.indirect(s.list(pieces...), rw)
		b := make([]byte, 3)
		for i := range entries - 1 {
			if f := s.Load(s.d.Local(), r.LKey(), uint64(2*i), b, 0); f != OK {
				t.Fatal(f)
			}
			at := 2 * (entries - 1 - i)
			if want := []byte{byte(at), byte(at + 1), byte(at - 2)}; !bytes.Equal(b, want) {
				t.Fatalf("entry %d: %v, want %v", i, b, want)
			}
		}
		if f := s.Load(s.d.Local(), r.LKey(), uint64(2*entries-2), b, 0); f != FaultOutOfRange {
			t.Errorf("one byte behind the end: %s", f)
		}
	}
}

// TestLayoutEntryLimit: how many entries there may be.
func TestLayoutEntryLimit(t *testing.T) {
	s := newStand(t)
	mr := s.region(16, 0, rw)
	for _, n := range []int{0, -1, MaxEntries + 1} {
		if _, err := s.RegisterIndirect(s.d, n); !errors.Is(err, ErrEntries) {
			t.Errorf("%d entries: %v", n, err)
		}
	}
	if _, err := s.RegisterIndirect(nil, 1); !errors.Is(err, ErrNoDomain) {
		t.Error(err)
	}
	r, err := s.RegisterIndirect(s.d, 2)
	if err != nil || r.Valid() {
		t.Fatalf("%v, valid %t", err, r.Valid())
	}
	if f := s.Check(s.d.Local(), r.LKey(), 0, 0, 0); f != FaultInvalid {
		t.Errorf("a key without a layout: %s", f)
	}
	p := Piece{0, 1, mr.LKey()}
	if err := s.ReregisterLayout(r, relaid, s.list(p, p, p), nil, 0); !errors.Is(err, ErrEntries) {
		t.Error(err)
	}
	if err := s.ReregisterLayout(r, relaid, s.list(p, p), nil, 0); err != nil {
		t.Error(err)
	}
}

// TestLayoutDepth: eight layouts on top of each other are seen through, nine are not.
func TestLayoutDepth(t *testing.T) {
	s := newStand(t)
	r := s.region(1<<9, 0, rw)
	want := r.Bytes()
	for depth := 1; depth <= MaxDepth; depth++ {
		half := r.Len() / 2
		if depth%2 == 0 { // every other byte
			r = s.indirect(s.pattern([]uint64{half},
				Block{LKey: r.LKey(), Addr: 1, Bytes: 1, Strides: []uint64{2}}), rw)
			var odd []byte
			for i := 1; i < len(want); i += 2 {
				odd = append(odd, want[i])
			}
			want = odd
		} else { // the halves swapped, without the last byte of each
			r = s.indirect(s.list(
				Piece{half, half - 1, r.LKey()}, Piece{0, half - 1, r.LKey()}), rw)
			want = slices.Concat(want[half:2*half-1], want[:half-1])
		}
		if got := s.all(r); !bytes.Equal(got, want) {
			t.Fatalf("%d deep: %v, want %v", depth, got, want)
		}
		if f := s.Store(s.d.Local(), r.LKey(), 0, want, LocalWrite); f != OK {
			t.Fatal(f)
		}
	}
	ninth, err := s.RegisterIndirect(s.d, 1)
	if err != nil {
		t.Fatal(err)
	}
	err = s.ReregisterLayout(ninth, relaid, s.list(Piece{0, 1, r.LKey()}), nil, 0)
	if !errors.Is(err, ErrLayout) || !strings.Contains(err.Error(), "pieces[0].lkey") {
		t.Errorf("nine deep: %v", err)
	}
	// A piece of no bytes is not part of the layout, so its key is not either.
	flat := s.region(8, 0, rw)
	of := s.indirect(s.list(Piece{0, 0, r.LKey()}, Piece{0, 8, flat.LKey()}), rw)
	if got := s.all(of); !bytes.Equal(got, flat.Bytes()) {
		t.Errorf("beside a piece of nothing: %v, want %v", got, flat.Bytes())
	}
}

// TestLayoutBlockBounds compares the closed form of what a block reaches with
// unbounded integers, at the corners of 64 bits and around the borders of a
// region.
func TestLayoutBlockBounds(t *testing.T) {
	corner := rapid.OneOf(
		rapid.SampledFrom([]uint64{
			0, 1, 2, 3, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, 1<<63 + 1,
			math.MaxUint64 - 1, math.MaxUint64,
		}),
		rapid.Uint64Range(0, 70),
	)
	s := newStand(t)
	mr := s.region(64, math.MaxUint64-100, RemoteRead)
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 3).Draw(t, "dims")
		repeat := rapid.SliceOfN(corner, dims, dims).Draw(t, "repeat")
		b := Block{
			LKey: mr.LKey(), Addr: mr.Addr() + rapid.Uint64Range(0, 66).Draw(t, "off"),
			Bytes:   corner.Draw(t, "bytes"),
			Strides: rapid.SliceOfN(corner, dims, dims).Draw(t, "strides"),
		}
		total, extent := number(b.Bytes), number(b.Bytes)
		for d, r := range repeat {
			total.Mul(total, number(r))
			if r > 0 {
				reach := new(big.Int).Mul(number(b.Strides[d]), number(r-1))
				extent.Add(extent, reach)
			}
		}
		space := new(big.Int).Lsh(big.NewInt(1), 64)
		wellFormed := total.Sign() > 0 && total.Cmp(space) < 0 && extent.Cmp(space) < 0
		l, err := NewInterleaved(repeat, []Block{b})
		if (err == nil) != wellFormed {
			t.Fatalf("%v %+v: %v", repeat, b, err)
		}
		if err != nil {
			return
		}
		end := extent.Add(extent, number(b.Addr-mr.Addr()))
		inside := end.Cmp(big.NewInt(64)) <= 0
		r, err := s.RegisterIndirect(s.d, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.ReregisterLayout(r, relaid, l, nil, RemoteRead); (err == nil) != inside {
			t.Fatalf("%v %+v: %v", repeat, b, err)
		}
		if err := s.Deregister(r); err != nil {
			t.Fatal(err)
		}
	})
}

func number(n uint64) *big.Int { return new(big.Int).SetUint64(n) }

// TestLayoutOverlappingBlock: a block whose elements overlap is one to read; of
// dimensions that lie in each other, the order does not matter.
func TestLayoutOverlappingBlock(t *testing.T) {
	s := newStand(t)
	mr := s.region(64, 0, rw)
	for _, tt := range []struct {
		repeat, strides []uint64
		overlaps        bool
	}{
		{[]uint64{2}, []uint64{4}, false},
		{[]uint64{2}, []uint64{3}, true},
		{[]uint64{2}, []uint64{0}, true},
		{[]uint64{1}, []uint64{0}, false},
		{[]uint64{3, 2}, []uint64{4, 12}, false},
		{[]uint64{3, 2}, []uint64{4, 11}, true},
		{[]uint64{2, 3}, []uint64{12, 4}, false},
		{[]uint64{2, 3}, []uint64{11, 4}, true},
	} {
		l := s.pattern(tt.repeat, Block{LKey: mr.LKey(), Bytes: 4, Strides: tt.strides})
		for _, access := range []Access{0, RemoteRead, LocalWrite, rw} {
			r, err := s.RegisterIndirect(s.d, 1)
			if err != nil {
				t.Fatal(err)
			}
			err = s.ReregisterLayout(r, relaid, l, nil, access)
			if (err != nil) != (tt.overlaps && access&writes != 0) {
				t.Errorf("%v, %s: %v", tt, access, err)
			}
			if err != nil && !strings.Contains(err.Error(), "blocks[0].strides") {
				t.Error(err)
			}
		}
	}
}

// TestLayoutAtomicWords: atomics work on eight bytes that are one aligned piece,
// through layouts in layouts, and on no others.
func TestLayoutAtomicWords(t *testing.T) {
	s := newStand(t)
	mr := s.region(256, 0x1000, rw)
	lists := s.indirect(s.list(
		Piece{0x1000, 8, mr.LKey()}, Piece{0x1014, 4, mr.LKey()}, Piece{0x1018, 4, mr.LKey()},
		Piece{0x1021, 8, mr.LKey()}, Piece{0x1030, 24, mr.LKey()}), rw)
	column := s.indirect(s.pattern([]uint64{3},
		Block{LKey: mr.LKey(), Addr: 0x1080, Bytes: 16, Strides: []uint64{40}}), rw)
	fours := s.indirect(s.pattern([]uint64{8},
		Block{LKey: mr.LKey(), Addr: 0x1080, Bytes: 4, Strides: []uint64{4}}), rw)
	nested := s.indirect(s.list(Piece{16, 16, column.LKey()}, Piece{24, 24, lists.LKey()}), rw)
	for _, tt := range []struct {
		r    *Region
		off  uint64
		at   int // in the region
		want Fault
	}{
		{lists, 0, 0, OK},
		{lists, 8, 0, FaultMisaligned},  // two pieces
		{lists, 16, 0, FaultMisaligned}, // one, at an odd place
		{lists, 24, 0x30, OK},
		{lists, 25, 0, FaultMisaligned},
		{lists, 40, 0x40, OK},
		{lists, 48, 0, FaultOutOfRange},
		{column, 0, 0x80, OK},
		{column, 24, 0x80 + 48, OK},
		{column, 40, 0x80 + 88, OK},
		{fours, 0, 0, FaultMisaligned}, // side by side, but two
		{nested, 8, 0x80 + 48, OK},
		{nested, 16, 0x30, OK},
		{nested, 32, 0x40, OK},
	} {
		w := mr.Bytes()[tt.at:]
		before := binary.NativeEndian.Uint64(w)
		all := bytes.Clone(mr.Bytes())
		old, f := s.FetchAdd(s.d.Local(), tt.r.RKey(), tt.off, 3)
		if f != tt.want {
			t.Errorf("%+v: %s", tt.off, f)
		}
		if f != OK {
			if !bytes.Equal(all, mr.Bytes()) {
				t.Errorf("%d: memory was changed", tt.off)
			}
			continue
		}
		if now := binary.NativeEndian.Uint64(w); old != before || now != before+3 {
			t.Errorf("%d: old %#x, now %#x, was %#x", tt.off, old, now, before)
		}
	}
}
