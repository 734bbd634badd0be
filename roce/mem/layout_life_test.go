package mem

import (
	"bytes"
	"errors"
	"testing"
)

// TestLayoutHoldsItsKeys: what a layout refers to stays as it is until the layout
// is gone, and so does a layout that others refer to.
func TestLayoutHoldsItsKeys(t *testing.T) {
	s := newStand(t)
	mr := s.region(64, 0x1000, rw|MWBind|Invalidatable)
	l := s.list(Piece{0x1000, 8, mr.LKey()}, Piece{0x1010, 8, mr.LKey()})
	below := s.indirect(l, rw|Invalidatable)
	above := s.indirect(s.list(Piece{0, 16, below.LKey()}), rw|Invalidatable)
	for _, r := range []*Region{mr, below} {
		if err := s.Deregister(r); !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
		if f := s.Invalidate(s.d.Local(), r.LKey()); f != FaultBusy {
			t.Error(f)
		}
		if err := s.ReregisterLayout(r, relaid, l, nil, 0); !errors.Is(err, ErrBusy) {
			t.Error(err)
		}
	}
	if err := s.Reregister(mr, ChangeAccess, Memory{}, nil, 0); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	err := s.Configure(s.d.Local(), UMR{Key: below.LKey(), Layout: l})
	if !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if !bytes.Equal(s.all(above), s.all(below)) {
		t.Error("the layout changed")
	}
	// A window on a layout holds it too.
	if err := s.Configure(s.d.Local(), UMR{
		Key: above.LKey(), Layout: s.list(Piece{0, 16, below.LKey()}), Access: rw | MWBind,
	}); err != nil {
		t.Fatal(err)
	}
	w, err := s.AllocWindow(s.d, WindowType1)
	if err != nil {
		t.Fatal(err)
	}
	if f := s.Bind(s.d.Local(), Bind{
		Window: w.RKey(), NewKey: w.RKey(), LKey: above.LKey(), Addr: 6, Length: 4,
		Access: RemoteRead,
	}); f != OK {
		t.Fatal(f)
	}
	got := make([]byte, 4)
	if f := s.Load(s.d.Local(), w.RKey(), 6, got, RemoteRead); f != OK ||
		!bytes.Equal(got, []byte{6, 7, 16, 17}) {
		t.Errorf("%v, %s", got, f)
	}
	if err := s.Deregister(above); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if err := s.DeallocWindow(w); err != nil {
		t.Fatal(err)
	}
	// From the top down all of it can go.
	if f := s.Invalidate(s.d.Local(), above.LKey()); f != OK {
		t.Fatal(f)
	}
	for _, r := range []*Region{below, mr, above} {
		if err := s.Deregister(r); err != nil || r.users != 0 {
			t.Errorf("%v, %d users", err, r.users)
		}
	}
}

// TestLayoutOfRegionAndBack: a region gets a layout, another one, and memory again,
// under its key and its address.
func TestLayoutOfRegionAndBack(t *testing.T) {
	s := newStand(t)
	matrix := s.region(64, 0x1000, rw)
	r := s.region(16, 0x700_0000, RemoteRead)
	key := r.RKey()
	column := s.pattern([]uint64{8},
		Block{LKey: matrix.LKey(), Addr: 0x1003, Bytes: 1, Strides: []uint64{8}})
	if err := s.ReregisterLayout(r, ChangeTranslation, column, nil, rw); err != nil {
		t.Fatal(err)
	}
	if r.RKey() != key || r.Addr() != 0x700_0000 || r.Len() != 8 || r.Access() != RemoteRead ||
		r.Bytes() != nil {
		t.Errorf("key %#x, %d bytes at %#x, %s", r.RKey(), r.Len(), r.Addr(), r.Access())
	}
	if got := s.all(r); !bytes.Equal(got, []byte{3, 11, 19, 27, 35, 43, 51, 59}) {
		t.Error(got)
	}
	if err := s.Reregister(r, ChangeAccess, Memory{}, nil, rw); !errors.Is(err, ErrChange) {
		t.Errorf("rights that were not checked: %v", err)
	}
	row := s.list(Piece{0x1008, 8, matrix.LKey()})
	if err := s.ReregisterLayout(r, relaid, row, nil, rw|ZeroBased); err != nil {
		t.Fatal(err)
	}
	if got := s.all(r); r.Addr() != 0 || !bytes.Equal(got, matrix.Bytes()[8:16]) {
		t.Errorf("%v at %#x", got, r.Addr())
	}
	m := Memory{Bytes: []byte("memory"), Addr: 0x30}
	if err := s.Reregister(r, ChangeTranslation|ChangeAccess, m, nil, 0); err != nil {
		t.Fatal(err)
	}
	if got := s.all(r); r.RKey() != key || string(got) != "memory" {
		t.Errorf("%s", got)
	}
	if err := s.Deregister(matrix); err != nil {
		t.Errorf("a layout that is gone still refers to it: %v", err)
	}
	if err := s.ReregisterLayout(matrix, relaid, row, nil, 0); !errors.Is(err, ErrNotRegistered) {
		t.Error(err)
	}
}

// TestLayoutDomain: a layout may come with another domain, that of all its
// keys.
func TestLayoutDomain(t *testing.T) {
	s := newStand(t)
	other := new(Domain)
	mr, err := s.RegisterAt(other, []byte("other"), 0, rw)
	if err != nil {
		t.Fatal(err)
	}
	r := s.region(8, 0, rw)
	l := s.list(Piece{1, 3, mr.LKey()})
	if err := s.ReregisterLayout(r, ChangeTranslation, l, other, 0); !errors.Is(err, ErrLayout) {
		t.Errorf("the domain is not to change: %v", err)
	}
	if err := s.ReregisterLayout(r, ChangeTranslation|ChangePD, l, other, 0); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 3)
	if f := s.Load(other.Local(), r.LKey(), 0, got, 0); f != OK || string(got) != "the" {
		t.Errorf("%s, %s", got, f)
	}
	if f := s.Check(s.d.Local(), r.LKey(), 0, 3, 0); f != FaultDomain {
		t.Error(f)
	}
}

// TestLayoutRights: what peers may do is decided by the layout's rights alone, so a
// column can be exposed and the matrix not.
func TestLayoutRights(t *testing.T) {
	s := newStand(t)
	matrix := s.region(64, 0, LocalWrite)
	column := s.pattern([]uint64{8}, Block{LKey: matrix.LKey(), Bytes: 1, Strides: []uint64{8}})
	open, local := s.indirect(column, rw), s.indirect(column, 0)
	for _, tt := range []struct {
		r    *Region
		need Access
		want Fault
	}{
		{matrix, RemoteRead, FaultRights},
		{open, RemoteRead, OK},
		{open, RemoteWrite, OK},
		{open, LocalWrite, OK},
		{local, 0, OK},
		{local, LocalWrite, FaultRights},
		{local, RemoteRead, FaultRights},
	} {
		if f := s.Check(s.d.Local(), tt.r.RKey(), 0, 8, tt.need); f != tt.want {
			t.Errorf("%s: %s, want %s", tt.need, f, tt.want)
		}
	}
}

// TestUMRReplacesLayout: a UMR replaces layouts, under another key if it names one.
// One that fails leaves the key invalid until the next.
func TestUMRReplacesLayout(t *testing.T) {
	s := newStand(t)
	mr := s.region(64, 0x1000, rw)
	r, err := s.RegisterIndirect(s.d, 1)
	if err != nil {
		t.Fatal(err)
	}
	l := s.list(Piece{0x1004, 4, mr.LKey()})
	u := UMR{Key: r.LKey(), Layout: l, Access: rw}
	configure := func(want error) {
		t.Helper()
		if err := s.Configure(s.d.Local(), u); !errors.Is(err, want) {
			t.Fatalf("%v, want %v", err, want)
		}
	}
	configure(nil)
	u.NewKey = u.Key ^ 0xff
	configure(nil)
	if r.LKey() != u.NewKey || !bytes.Equal(s.all(r), []byte{4, 5, 6, 7}) {
		t.Errorf("key %#x, want %#x", r.LKey(), u.NewKey)
	}
	configure(ErrChange) // the old key is none
	u.Key, u.NewKey = r.LKey(), r.LKey()^0x100
	configure(ErrChange)
	u.NewKey, u.Key = 0, mr.LKey()
	configure(ErrChange) // a region's
	if !r.Valid() {
		t.Error("a UMR of no key took one out of use")
	}
	u.Key = r.LKey()
	if err := s.Configure(new(Domain).Local(), u); !errors.Is(err, ErrChange) || !r.Valid() {
		t.Error(err)
	}
	u.Layout = s.list(Piece{0x1004, 61, mr.LKey()})
	configure(ErrLayout)
	if r.Valid() || r.Len() != 0 || mr.users != 0 {
		t.Errorf("valid %t, %d bytes, %d users", r.Valid(), r.Len(), mr.users)
	}
	if f := s.Check(s.d.Local(), r.LKey(), 0, 0, 0); f != FaultInvalid {
		t.Error(f)
	}
	u.Layout = l
	configure(nil)
	if !bytes.Equal(s.all(r), []byte{4, 5, 6, 7}) {
		t.Error("the layout is not back")
	}
}

// TestLayoutInvalidate: the owner takes a layout away with LOCAL_INV; a peer only
// where the key says so.
func TestLayoutInvalidate(t *testing.T) {
	s := newStand(t)
	mr := s.region(64, 0, rw)
	l := s.list(Piece{4, 4, mr.LKey()})
	r := s.indirect(l, rw)
	peer := Accessor{Domain: s.d, Party: new(Party)}
	if f := s.Invalidate(peer, r.LKey()); f != FaultRights {
		t.Error(f)
	}
	if f := s.Invalidate(s.d.Local(), r.LKey()); f != OK || mr.users != 0 {
		t.Errorf("%s, %d users", f, mr.users)
	}
	if err := s.Validate(r, 1); !errors.Is(err, ErrNotInvalidated) {
		t.Errorf("nothing to make valid: %v", err)
	}
	if err := s.ReregisterLayout(r, relaid, l, nil, rw|Invalidatable); err != nil {
		t.Fatal(err)
	}
	if f := s.Invalidate(peer, r.LKey()); f != OK || mr.users != 0 {
		t.Errorf("%s, %d users", f, mr.users)
	}
	if f := s.Check(s.d.Local(), r.LKey(), 0, 0, 0); f != FaultInvalid {
		t.Error(f)
	}
}
