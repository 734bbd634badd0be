package mem

import (
	"errors"
	"testing"
)

// TestRegisterAgain: a region that was deregistered has another key and other memory, and the old
// key is nobody's.
func TestRegisterAgain(t *testing.T) {
	k, d, other := newKeys(1), new(Domain), new(Domain)
	r, err := k.Register(d, make([]byte, 16), LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.RegisterAgain(r, d, Memory{}, 0); !errors.Is(err, ErrBusy) {
		t.Errorf("a region that is registered: %v", err)
	}
	old := r.LKey()
	if err := k.Deregister(r); err != nil {
		t.Fatal(err)
	}
	k.Forget(r)
	if r.Bytes() != nil || r.Domain() != nil || k.Deregister(r) != ErrNotRegistered {
		t.Error("the region is there still, or its memory")
	}
	if err := k.RegisterAgain(r, d, Memory{}, RemoteWrite); !errors.Is(err, ErrAccess) {
		t.Errorf("flags that are refused: %v", err)
	}
	b := make([]byte, 32)
	if err := k.RegisterAgain(r, other, MemoryOf(b, RemoteRead), RemoteRead); err != nil {
		t.Fatal(err)
	}
	if f := k.Check(d.Local(), old, r.Addr(), 16, 0); f != FaultNoKey {
		t.Errorf("the old key: %v", f)
	}
	if f := k.Check(other.Local(), r.LKey(), r.Addr(), 32, RemoteRead); f != OK {
		t.Errorf("the new key: %v", f)
	}
	if r.LKey() == old || r.Len() != 32 || &r.Bytes()[0] != &b[0] || k.Len() != 1 {
		t.Errorf("key %#x before %#x, %d bytes, %d keys", r.LKey(), old, r.Len(), k.Len())
	}
}

// TestRegisterAgainOfASource: what a layout compares with stays what it was.
func TestRegisterAgainOfASource(t *testing.T) {
	k, d := newKeys(2), new(Domain)
	r, err := k.Register(d, make([]byte, 16), LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	all, err := k.RegisterIndirect(d, 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewList([]Piece{{Addr: r.Addr(), Length: 16, LKey: r.LKey()}})
	if err != nil {
		t.Fatal(err)
	}
	what := ChangeTranslation | ChangeAccess
	if err := k.ReregisterLayout(all, what, l, d, LocalWrite); err != nil {
		t.Fatal(err)
	}
	was := all.now().space.(*layoutSpace).sources[0].view
	before := *was
	for _, one := range []*Region{all, r} {
		if err := k.Deregister(one); err != nil {
			t.Fatal(err)
		}
	}
	k.Forget(r)
	if err := k.RegisterAgain(r, d, MemoryOf(make([]byte, 8), 0), 0); err != nil {
		t.Fatal(err)
	}
	if r.now() == was || was.key != before.key || len(was.bytes) != 16 {
		t.Error("the view of the source was changed")
	}
}

// TestRegisterAgainDoesNotAllocate: that is what it is for.
func TestRegisterAgainDoesNotAllocate(t *testing.T) {
	k, d, b := newKeys(3), new(Domain), make([]byte, 16)
	r, err := k.Register(d, b, LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	again := func() {
		if err := k.Deregister(r); err != nil {
			t.Fatal(err)
		}
		k.Forget(r)
		if err := k.RegisterAgain(r, d, MemoryOf(b, LocalWrite), LocalWrite); err != nil {
			t.Fatal(err)
		}
	}
	for range 5000 { // numbers that rest grow
		again()
	}
	if n := testing.AllocsPerRun(100, again); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
