package mem

import (
	"bytes"
	"fmt"
	"slices"
	"testing"
)

// TestLayoutOfManPage is the worked example of mlx5dv_wr_mr_interleaved.
func TestLayoutOfManPage(t *testing.T) {
	s := newStand(t)
	mr1, mr2 := s.region(1028, 0x1000, rw), s.region(16, 0x9000, rw)
	r := s.indirect(s.pattern([]uint64{2},
		Block{LKey: mr1.LKey(), Addr: 0x1000, Bytes: 512, Strides: []uint64{512 + 4}},
		Block{LKey: mr2.LKey(), Addr: 0x9000, Bytes: 8, Strides: []uint64{8}}), rw)
	a, b := mr1.Bytes(), mr2.Bytes()
	want := slices.Concat(a[:512], b[:8], a[516:1028], b[8:])
	if got := s.all(r); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestLayoutOfRDMACore is the layout of rdma-core's own test: blocks of 8 bytes that
// skip 2, at 0 and at 64, three times.
func TestLayoutOfRDMACore(t *testing.T) {
	s := newStand(t)
	mr := s.region(64+28, 0, rw) // not a byte more: what follows the last is not accessed
	r := s.indirect(s.pattern([]uint64{3},
		Block{LKey: mr.LKey(), Addr: 0, Bytes: 8, Strides: []uint64{10}},
		Block{LKey: mr.LKey(), Addr: 64, Bytes: 8, Strides: []uint64{10}}), rw)
	b := mr.Bytes()
	want := slices.Concat(b[:8], b[64:72], b[10:18], b[74:82], b[20:28], b[84:92])
	if got := s.all(r); !bytes.Equal(got, want) {
		t.Errorf("%x, want %x", got, want)
	}
}

// TestLayoutEveryMatrixColumn takes the last column of every matrix up to 64 by 64 apart and
// puts another in its place.
func TestLayoutEveryMatrixColumn(t *testing.T) {
	s := newStand(t)
	const element = 4
	for rows := 1; rows <= 64; rows++ {
		for columns := 1; columns <= 64; columns++ {
			mr := s.region(rows*columns*element, 0, rw)
			at := (columns - 1) * element
			r := s.indirect(s.pattern([]uint64{uint64(rows)}, Block{
				LKey: mr.LKey(), Addr: uint64(at), Bytes: element,
				Strides: []uint64{uint64(columns * element)},
			}), rw)
			want := bytes.Clone(mr.Bytes())
			for row := range rows {
				copy(want[at+row*columns*element:], fmt.Sprintf("%4d", row))
			}
			var column []byte
			for row := range rows {
				column = fmt.Appendf(column, "%4d", row)
			}
			if f := s.Store(s.d.Local(), r.RKey(), 0, column, RemoteWrite); f != OK {
				t.Fatal(f)
			}
			if !bytes.Equal(mr.Bytes(), want) || !bytes.Equal(s.all(r), column) {
				t.Fatalf("%d by %d: %x", rows, columns, mr.Bytes())
			}
			if s.Deregister(r) != nil || s.Deregister(mr) != nil {
				t.Fatal("in use")
			}
		}
	}
}

// TestLayoutInterleaveRatios: columns A and B interleave as their blocks are listed.
func TestLayoutInterleaveRatios(t *testing.T) {
	s := newStand(t)
	const n = 12
	a, b := s.region(n, 0, rw), s.region(n, 0, rw)
	copy(a.Bytes(), "abcdefghijkl")
	copy(b.Bytes(), "ABCDEFGHIJKL")
	for _, tt := range []struct{ order, want string }{
		{"AB", "aAbBcCdDeEfFgGhHiIjJkKlL"},
		{"AABB", "abABcdCDefEFghGHijIJklKL"},
		{"ABB", "aABbCDcEFdGHeIJfKL"},
	} {
		var blocks []Block
		each := map[rune]uint64{}
		for _, c := range tt.order {
			each[c]++
		}
		seen := map[rune]uint64{}
		for _, c := range tt.order {
			key := a.LKey()
			if c == 'B' {
				key = b.LKey()
			}
			blocks = append(blocks, Block{
				LKey: key, Addr: seen[c], Bytes: 1, Strides: []uint64{each[c]},
			})
			seen[c]++
		}
		repeat := uint64(len(tt.want) / len(tt.order))
		got := s.all(s.indirect(s.pattern([]uint64{repeat}, blocks...), rw))
		if string(got) != tt.want {
			t.Errorf("%s: %s, want %s", tt.order, got, tt.want)
		}
	}
}

// TestLayoutNesting is a list of columns of a matrix that is itself a list of rows
// in two regions.
func TestLayoutNesting(t *testing.T) {
	s := newStand(t)
	top, bottom := s.region(12, 0x100, rw), s.region(12, 0x900, rw)
	copy(top.Bytes(), "abcdefghijkl")
	copy(bottom.Bytes(), "mnopqrstuvwx")
	matrix := s.indirect(s.list(Piece{0x100, 12, top.LKey()}, Piece{0x900, 12, bottom.LKey()}), rw)
	var columns []Piece
	for _, c := range []uint64{4, 0} { // of 6 by 4
		r := s.indirect(s.pattern([]uint64{6},
			Block{LKey: matrix.LKey(), Addr: c % 4, Bytes: 1, Strides: []uint64{4}}), rw)
		columns = append(columns, Piece{1, 4, r.LKey()})
	}
	three := s.indirect(s.pattern([]uint64{2, 2},
		Block{LKey: columns[0].LKey, Addr: 1, Bytes: 1, Strides: []uint64{1, 2}},
		Block{LKey: columns[1].LKey, Addr: 1, Bytes: 1, Strides: []uint64{3, 1}}), LocalWrite)
	// Columns are "aeimqu"; from 1 on "eimqu".
	if got := string(s.all(three)); got != "eeiqmiqu" {
		t.Error(got)
	}
	if f := s.Store(s.d.Local(), three.LKey(), 2, []byte("I"), LocalWrite); f != OK {
		t.Fatal(f)
	}
	if string(top.Bytes()) != "abcdefghIjkl" {
		t.Errorf("%s", top.Bytes())
	}
}
