package mem

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestLayoutRefused: what a layout cannot be, or not with these keys. The error
// names the field, and the old layout goes on.
func TestLayoutRefused(t *testing.T) {
	s := newStand(t)
	mr, fixed := s.region(64, 0x1000, rw|MWBind), s.region(64, 0x1000, RemoteRead)
	foreign, err := s.RegisterAt(new(Domain), make([]byte, 64), 0x1000, rw)
	if err != nil {
		t.Fatal(err)
	}
	invalid := s.region(64, 0x1000, rw|Invalidatable)
	if f := s.Invalidate(s.d.Local(), invalid.LKey()); f != OK {
		t.Fatal(f)
	}
	window, err := s.AllocWindow(s.d, WindowType2)
	if err != nil {
		t.Fatal(err)
	}
	never, err := s.RegisterIndirect(s.d, 4)
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.RegisterIndirect(s.d, 4)
	if err != nil {
		t.Fatal(err)
	}
	first := s.list(Piece{0x1002, 5, mr.LKey()})
	if err := s.ReregisterLayout(r, relaid, first, nil, rw); err != nil {
		t.Fatal(err)
	}
	good := Piece{0x1000, 8, mr.LKey()}
	block := func(key uint32, addr, n uint64, strides ...uint64) []Block {
		return []Block{
			{LKey: mr.LKey(), Addr: 0x1000, Bytes: 1, Strides: strides},
			{LKey: key, Addr: addr, Bytes: n, Strides: strides},
		}
	}
	const most = math.MaxUint64
	for _, tt := range []struct {
		name   string
		pieces []Piece // or
		repeat []uint64
		blocks []Block
		access Access
		want   error
		text   string
	}{
		{"no pieces", []Piece{}, nil, nil, 0, ErrLayout, "0 pieces"},
		{
			"no bytes",
			[]Piece{{0x1000, 0, mr.LKey()}},
			nil, nil, 0,
			ErrLayout, "pieces have no bytes",
		},
		{
			"too long",
			[]Piece{good, {0x1000, most - 7, mr.LKey()}},
			nil, nil, 0,
			ErrLayout, "pieces[1].length",
		},
		{"too many", []Piece{good, good, good, good, good}, nil, nil, 0, ErrEntries, "5"},
		{"unknown key", []Piece{good, {0x1000, 1, 0}}, nil, nil, 0, ErrLayout, "pieces[1].lkey"},
		{
			"its own key",
			[]Piece{good, {0, 1, r.LKey()}},
			nil, nil, 0,
			ErrLayout, "pieces[1].lkey",
		},
		{"window", []Piece{{0, 1, window.RKey()}}, nil, nil, 0, ErrLayout, "pieces[0].lkey"},
		{
			"other domain",
			[]Piece{{0x1000, 1, foreign.LKey()}},
			nil, nil, 0,
			ErrLayout, "other protection domain",
		},
		{
			"invalid",
			[]Piece{{0x1000, 1, invalid.LKey()}},
			nil, nil, 0,
			ErrLayout, "pieces[0].lkey",
		},
		{
			"no layout yet",
			[]Piece{{0, 1, never.LKey()}},
			nil, nil, 0,
			ErrLayout, "pieces[0].lkey",
		},
		{"before", []Piece{{0xfff, 1, mr.LKey()}}, nil, nil, 0, ErrLayout, "pieces[0].addr"},
		{
			"behind",
			[]Piece{good, {0x103f, 2, mr.LKey()}},
			nil, nil, 0,
			ErrLayout, "pieces[1].addr",
		},
		{
			"to write what is read only",
			[]Piece{{0x1000, 1, fixed.LKey()}},
			nil, nil, LocalWrite,
			ErrLayout, "LOCAL_WRITE",
		},
		{
			"the same for peers",
			[]Piece{good, {0x1000, 1, fixed.LKey()}},
			nil, nil, LocalWrite | RemoteWrite,
			ErrLayout, "pieces[1].lkey",
		},
		{"remote write alone", []Piece{good}, nil, nil, RemoteWrite, ErrAccess, "REMOTE_WRITE"},
		{"on demand", []Piece{good}, nil, nil, OnDemand, ErrAccess, "ON_DEMAND"},
		{"persistent", []Piece{good}, nil, nil, FlushPersistent, ErrAccess, "FLUSH_PERSISTENT"},
		{"unknown access", []Piece{good}, nil, nil, 1 << 11, ErrAccess, "UNKNOWN"},

		{
			"no dimension", nil,
			[]uint64{},
			block(mr.LKey(), 0x1000, 1), 0,
			ErrLayout, "repeat has 0",
		},
		{
			"nine dimensions",
			nil, make([]uint64, 9), block(mr.LKey(), 0x1000, 1, make([]uint64, 9)...), 0,
			ErrLayout, "repeat has 9",
		},
		{
			"zero repeats", nil,
			[]uint64{2, 0},
			block(mr.LKey(), 0x1000, 1, 8, 8), 0,
			ErrLayout, "repeat[1]",
		},
		{
			"too many repeats", nil,
			[]uint64{2, most},
			block(mr.LKey(), 0x1000, 1, 8, 8), 0,
			ErrLayout, "repeat[1]",
		},
		{"no blocks", nil, []uint64{2}, []Block{}, 0, ErrLayout, "0 blocks"},
		{
			"blocks of nothing", nil,
			[]uint64{2},
			[]Block{{Strides: []uint64{1}}},
			0,
			ErrLayout, "blocks have no bytes",
		},
		{
			"bytes too many", nil,
			[]uint64{1},
			block(mr.LKey(), 0x1000, most, 8), 0,
			ErrLayout, "blocks[1].bytes",
		},
		{
			"strides too few", nil,
			[]uint64{2, 2},
			block(mr.LKey(), 0x1000, 1, 8), 0,
			ErrLayout, "blocks[0].strides",
		},
		{
			"stride too long", nil,
			[]uint64{2, 3},
			block(mr.LKey(), 0x1000, 1, 8, 1<<63), 0,
			ErrLayout, "blocks[0].strides[1]",
		},
		{
			"reaches behind", nil,
			[]uint64{4},
			block(mr.LKey(), 0x1038, 4, 4), 0,
			ErrLayout, "blocks[1].addr",
		},
		{
			"overlaps", nil,
			[]uint64{4},
			block(mr.LKey(), 0x1000, 4, 3), rw,
			ErrLayout, "blocks[1].strides",
		},
		{
			"unknown in a block", nil,
			[]uint64{4},
			block(1, 0x1000, 4, 3), 0,
			ErrLayout, "blocks[1].lkey",
		},
	} {
		var l *Layout
		var err error
		if tt.pieces != nil {
			l, err = NewList(tt.pieces)
		} else {
			l, err = NewInterleaved(tt.repeat, tt.blocks)
		}
		if err == nil {
			err = s.ReregisterLayout(r, relaid, l, nil, tt.access)
		}
		if !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %v, want %q in it", tt.name, err, tt.text)
		}
		if got := s.all(r); !bytes.Equal(got, mr.Bytes()[2:7]) || r.Access() != rw {
			t.Errorf("%s: the old layout became %v", tt.name, got)
		}
		if mr.users != 1 || fixed.users != 0 {
			t.Errorf("%s: %d and %d users", tt.name, mr.users, fixed.users)
		}
	}
	for _, what := range []Change{0, ChangeAccess, ChangePD, relaid | 1<<3} {
		if err := s.ReregisterLayout(r, what, s.list(good), nil, 0); !errors.Is(err, ErrChange) {
			t.Errorf("flags %#x: %v", what, err)
		}
	}
	if err := s.ReregisterLayout(r, relaid, nil, nil, 0); !errors.Is(err, ErrLayout) {
		t.Error(err)
	}
}
