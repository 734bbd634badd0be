package mem

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
)

const sliceRights = LocalWrite | RemoteRead | RemoteWrite | RemoteAtomic

// newSlices registers slices of these lengths, and returns what they hold one after the other.
func newSlices(t *testing.T, k *Keys, d *Domain, lengths ...int) (*Region, [][]byte, []byte) {
	t.Helper()
	var all [][]byte
	var model []byte
	for i, n := range lengths {
		b := make([]byte, n)
		for j := range b {
			b[j] = byte(i*31 + j*7)
		}
		all, model = append(all, b), append(model, b...)
	}
	r, err := k.RegisterMemory(d, Memory{Slices: all}, sliceRights)
	if err != nil {
		t.Fatal(err)
	}
	if r.Addr() != 0 || r.Len() != uint64(len(model)) || r.Bytes() != nil {
		t.Fatalf("%d bytes at %#x of %d", r.Len(), r.Addr(), len(model))
	}
	return r, all, model
}

// TestSlicesAgainstOne: slices under one key are as one slice, from and to every place, and what
// lies outside is refused.
func TestSlicesAgainstOne(t *testing.T) {
	k, d := newKeys(10), new(Domain)
	r, all, model := newSlices(t, k, d, 0, 5, 1, 0, 0, 17, 64, 3, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	for off := range len(model) + 2 {
		for n := range len(model) - off + 3 {
			got, want := make([]byte, max(n, 0)), OK
			if off+n > len(model) {
				want = FaultOutOfRange
			}
			if f := k.Load(d.Local(), r.LKey(), uint64(off), got, 0); f != want {
				t.Fatalf("load of %d at %d: %v", n, off, f)
			}
			if want == OK && !bytes.Equal(got, model[off:off+n]) {
				t.Fatalf("loaded %x at %d", got, off)
			}
			for i := range got {
				got[i] = byte(rng.Uint32())
			}
			if f := k.Store(d.Local(), r.RKey(), uint64(off), got, RemoteWrite); f != want {
				t.Fatalf("store of %d at %d: %v", n, off, f)
			}
			if want == OK {
				copy(model[off:], got)
			}
			if now := bytes.Join(all, nil); !bytes.Equal(now, model) {
				t.Fatalf("after a store of %d at %d:\n%x, not\n%x", n, off, now, model)
			}
			if _, steady := k.Steady(d.Local(), r.LKey(), uint64(off), n, 0); steady != want {
				t.Fatalf("steady is %v", steady)
			}
		}
	}
}

// TestWordInSlices: a word is in one slice, and aligned there.
func TestWordInSlices(t *testing.T) {
	k, d := newKeys(11), new(Domain)
	for _, c := range []struct {
		lengths []int
		addr    uint64
		want    Fault
	}{
		{[]int{16, 16}, 8, OK},
		{[]int{16, 16}, 16, OK},
		{[]int{12, 16}, 8, FaultMisaligned},  // part of it in either
		{[]int{12, 20}, 16, FaultMisaligned}, // four bytes into memory that is aligned to eight
		{[]int{16, 16}, 25, FaultOutOfRange},
		{[]int{16, 16}, 9, FaultMisaligned},
	} {
		r, all, _ := newSlices(t, k, d, c.lengths...)
		old, f := k.FetchAdd(d.Local(), r.RKey(), c.addr, 1)
		if f != c.want {
			t.Errorf("%v at %d: %v, not %v", c.lengths, c.addr, f, c.want)
		}
		if f != OK {
			continue
		}
		now := binary.NativeEndian.Uint64(bytes.Join(all, nil)[c.addr:])
		if now != old+1 {
			t.Errorf("%v at %d: %#x after %#x", c.lengths, c.addr, now, old)
		}
	}
}

// TestSlicesAreNoOtherMemory: what cannot be is refused.
func TestSlicesAreNoOtherMemory(t *testing.T) {
	k, d, two := newKeys(12), new(Domain), [][]byte{make([]byte, 8), make([]byte, 8)}
	for _, c := range []struct {
		memory Memory
		access Access
		want   error
	}{
		{Memory{Slices: make([][]byte, MaxEntries+1)}, 0, ErrEntries},
		{Memory{Slices: two, Bytes: two[0]}, 0, ErrAccess},
		{Memory{Slices: two, Addr: ^uint64(0) - 14}, 0, ErrRange},
		{Memory{Slices: two}, OnDemand, ErrAccess},
		{Memory{Slices: two}, RemoteWrite, ErrAccess},
	} {
		if _, err := k.RegisterMemory(d, c.memory, c.access); !errors.Is(err, c.want) {
			t.Errorf("%v is not %v", err, c.want)
		}
	}
	if k.Len() != 0 {
		t.Errorf("%d keys", k.Len())
	}
}

// TestSlicesInALayout: they are a source as any other.
func TestSlicesInALayout(t *testing.T) {
	k, d := newKeys(13), new(Domain)
	r, _, model := newSlices(t, k, d, 10, 20, 30)
	all, err := k.RegisterIndirect(d, 2)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewList([]Piece{
		{Addr: 25, Length: 30, LKey: r.LKey()}, {Addr: 5, Length: 10, LKey: r.LKey()},
	})
	if err != nil {
		t.Fatal(err)
	}
	err = k.ReregisterLayout(all, ChangeTranslation|ChangeAccess, l, d, sliceRights)
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 40)
	want := append(append([]byte(nil), model[25:55]...), model[5:15]...)
	f := k.Load(d.Local(), all.LKey(), 0, got, 0)
	if f != OK || !bytes.Equal(got, want) {
		t.Errorf("%v: %x, not %x", f, got, want)
	}
	if err := k.Deregister(r); !errors.Is(err, ErrBusy) {
		t.Errorf("the source of a layout: %v", err)
	}
}

// TestSlicesAgain: a region that is used again has the new memory alone, holds nothing of the old
// one, and allocates nothing for as many slices as it had.
func TestSlicesAgain(t *testing.T) {
	k, d := newKeys(14), new(Domain)
	r, all, _ := newSlices(t, k, d, 100, 200, 300)
	one := make([]byte, 50)
	next := func(m Memory) {
		if err := k.Deregister(r); err != nil {
			t.Fatal(err)
		}
		k.Forget(r)
		for _, b := range r.slices.slices[:cap(r.slices.slices)] {
			if b != nil {
				t.Fatal("memory is held that nobody has registered")
			}
		}
		if err := k.RegisterAgain(r, d, m, sliceRights); err != nil {
			t.Fatal(err)
		}
	}
	run := func() {
		next(Memory{Slices: all[1:]})
		if r.Len() != 500 {
			t.Fatalf("%d bytes of two slices", r.Len())
		}
		next(MemoryOf(one, 0))
		if r.Len() != 50 || &r.Bytes()[0] != &one[0] {
			t.Fatalf("%d bytes of one slice", r.Len())
		}
		next(Memory{Slices: all})
	}
	for range 3000 { // numbers that rest grow
		run()
	}
	if n := testing.AllocsPerRun(100, run); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestSlicesAgainOfASource: a layout that still has them may read them once more.
func TestSlicesAgainOfASource(t *testing.T) {
	k, d := newKeys(15), new(Domain)
	r, all, _ := newSlices(t, k, d, 8, 8)
	r.shared = true // as addSource says
	was := r.slices
	if err := k.Deregister(r); err != nil {
		t.Fatal(err)
	}
	k.Forget(r)
	if err := k.RegisterAgain(r, d, Memory{Slices: all[:1]}, 0); err != nil {
		t.Fatal(err)
	}
	if r.slices == was || len(was.slices) != 2 {
		t.Error("what the layout has was changed")
	}
}
