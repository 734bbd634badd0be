package mem

import (
	"errors"
	"testing"
)

// A windowStand is a region to which windows can be bound, and who binds them.
type windowStand struct {
	k       *Keys
	domain  *Domain
	owner   Accessor // the QP that binds
	other   Accessor // another QP of its domain
	foreign Accessor // a QP of another domain
	bytes   []byte
	region  *Region
}

const standAddr = 0x10000

// newWindowStand has a region of 4096 bytes which grants peers nothing itself.
func newWindowStand(t *testing.T) *windowStand {
	t.Helper()
	s := &windowStand{k: newKeys(7), domain: new(Domain), bytes: make([]byte, 4096)}
	s.owner = Accessor{Domain: s.domain, Party: new(Party)}
	s.other = Accessor{Domain: s.domain, Party: new(Party)}
	s.foreign = Accessor{Domain: new(Domain), Party: new(Party)}
	var err error
	s.region, err = s.k.RegisterAt(s.domain, s.bytes, standAddr, LocalWrite|MWBind)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// alloc makes a window.
func (s *windowStand) alloc(t *testing.T, typ WindowType) *Window {
	t.Helper()
	w, err := s.k.AllocWindow(s.domain, typ)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// to is a bind of a window to part of the region, under the next key.
func (s *windowStand) to(w *Window, off, n uint64, access Access) Bind {
	return Bind{
		Window: w.RKey(), NewKey: NextKey(w.RKey()), LKey: s.region.LKey(),
		Addr: standAddr + off, Length: n, Access: access,
	}
}

// bound makes a window that is bound already.
func (s *windowStand) bound(t *testing.T, typ WindowType, off, n uint64, access Access) *Window {
	t.Helper()
	w := s.alloc(t, typ)
	if f := s.k.Bind(s.owner, s.to(w, off, n, access)); f != OK {
		t.Fatal(f)
	}
	return w
}

// TestWindowUnboundGrantsNothing: the first key of a window of either type is of
// use to nobody, not even for zero bytes.
func TestWindowUnboundGrantsNothing(t *testing.T) {
	s := newWindowStand(t)
	for typ, want := range map[WindowType]Fault{
		WindowType1: FaultRights, WindowType2: FaultInvalid,
	} {
		w := s.alloc(t, typ)
		if w.Type() != typ || w.Bound() || w.Len() != 0 || w.Access() != 0 || w.RKey() == 0 {
			t.Errorf("type %d: %d %t %d %s %#x", typ, w.Type(), w.Bound(), w.Len(), w.Access(),
				w.RKey())
		}
		for _, need := range []Access{0, RemoteRead, RemoteWrite, LocalWrite, FlushGlobal} {
			for _, n := range []int{0, 1} {
				if f := s.k.Check(s.owner, w.RKey(), 0, n, need); f != want {
					t.Errorf("type %d, %d bytes for %s: %s, want %s", typ, n, need, f, want)
				}
			}
		}
		if f := s.k.Check(s.foreign, w.RKey(), 0, 0, 0); f != FaultDomain {
			t.Errorf("type %d: another domain: %s", typ, f)
		}
	}
}

// TestAllocWindowRefuses what is no type, and no domain.
func TestAllocWindowRefuses(t *testing.T) {
	s := newWindowStand(t)
	for _, typ := range []WindowType{0, 3, 255} {
		if _, err := s.k.AllocWindow(s.domain, typ); !errors.Is(err, ErrWindow) {
			t.Errorf("type %d: %v", typ, err)
		}
	}
	if _, err := s.k.AllocWindow(nil, WindowType1); !errors.Is(err, ErrNoDomain) {
		t.Error(err)
	}
	if s.k.Len() != 1 {
		t.Errorf("%d keys are left", s.k.Len()-1)
	}
}

// TestDeallocUnbinds: the key of a window that is gone is dead at once, and the
// region is free again when its last window went.
func TestDeallocUnbinds(t *testing.T) {
	for _, typ := range []WindowType{WindowType1, WindowType2} {
		s := newWindowStand(t)
		a := s.bound(t, typ, 0, 64, RemoteRead)
		b := s.bound(t, typ, 0, 64, RemoteRead)
		for i, w := range []*Window{a, b} {
			if err := s.k.Deregister(s.region); !errors.Is(err, ErrBusy) {
				t.Fatalf("type %d, %d windows left: %v", typ, 2-i, err)
			}
			key := w.RKey()
			if f := s.k.Check(s.owner, key, standAddr, 64, RemoteRead); f != OK {
				t.Fatal(f)
			}
			if err := s.k.DeallocWindow(w); err != nil {
				t.Fatal(err)
			}
			if w.Bound() || w.Len() != 0 || w.Access() != 0 {
				t.Errorf("type %d: after dealloc: %d bytes, %s", typ, w.Len(), w.Access())
			}
			if f := s.k.Check(s.owner, key, standAddr, 64, RemoteRead); f != FaultNoKey {
				t.Errorf("type %d: after dealloc: %s", typ, f)
			}
			if f := s.k.Bind(s.owner, s.to(w, 0, 1, 0)); f != FaultNoKey {
				t.Errorf("type %d: bound after dealloc: %s", typ, f)
			}
			if err := s.k.DeallocWindow(w); !errors.Is(err, ErrNotRegistered) {
				t.Errorf("type %d: deallocated twice: %v", typ, err)
			}
		}
		if err := s.k.Deregister(s.region); err != nil || s.k.Len() != 0 {
			t.Errorf("type %d: %v, %d keys", typ, err, s.k.Len())
		}
	}
}

// TestWindowFreeHoldsNoRegion holds no region.
func TestWindowFreeHoldsNoRegion(t *testing.T) {
	s := newWindowStand(t)
	free := s.alloc(t, WindowType2)
	unbound := s.bound(t, WindowType1, 0, 8, RemoteRead)
	if f := s.k.Bind(s.owner, s.to(unbound, 0, 0, 0)); f != OK {
		t.Fatal(f)
	}
	if err := s.k.Deregister(s.region); err != nil {
		t.Error(err)
	}
	for _, w := range []*Window{free, unbound} {
		if err := s.k.DeallocWindow(w); err != nil {
			t.Error(err)
		}
	}
}

func TestNextKey(t *testing.T) {
	for key, want := range map[uint32]uint32{
		0x12345600: 0x12345601, 0x123456ff: 0x12345600, 0xffffffff: 0xffffff00,
	} {
		if got := NextKey(key); got != want {
			t.Errorf("%#x: %#x, want %#x", key, got, want)
		}
	}
}
