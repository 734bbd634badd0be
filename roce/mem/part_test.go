package mem

import (
	"bytes"
	"errors"
	"testing"
)

// TestPart: a part of a region has a key, a domain and rights of its own, names its bytes and no
// others, and the region stays as it is until the part is gone, again and again.
func TestPart(t *testing.T) {
	k := newKeys(3)
	owner, peers := new(Domain), new(Domain)
	b := make([]byte, 100)
	r, err := k.RegisterAt(owner, b, 0x1000, LocalWrite|Invalidatable)
	must(t, err)
	peer, mine := Accessor{Domain: peers, Party: new(Party)}, Accessor{Domain: owner}
	of := Memory{Of: r, Addr: 0x1000 + 10, Length: 20}
	p, err := k.RegisterMemory(peers, of, RemoteWrite|LocalWrite)
	must(t, err)
	var last uint32
	for range 3 {
		if p.LKey() == last || p.Addr() != of.Addr || p.Len() != 20 || &p.Bytes()[0] != &b[10] {
			t.Errorf("key %#x: %d bytes at %#x", p.LKey(), p.Len(), p.Addr())
		}
		last = p.LKey()
		for _, c := range []struct {
			a    Accessor
			addr uint64
			n    int
			need Access
			want Fault
		}{
			{peer, of.Addr, 20, RemoteWrite, OK},
			{peer, of.Addr - 1, 2, RemoteWrite, FaultOutOfRange},
			{peer, of.Addr, 21, RemoteWrite, FaultOutOfRange},
			{peer, of.Addr, 20, RemoteRead, FaultRights},
			{mine, of.Addr, 20, LocalWrite, FaultDomain},
		} {
			if f := k.Check(c.a, p.LKey(), c.addr, c.n, c.need); f != c.want {
				t.Errorf("%d bytes at %#x for %s: %s", c.n, c.addr, c.need, f)
			}
		}
		if f := k.Check(peer, r.LKey(), of.Addr, 20, RemoteWrite); f != FaultDomain {
			t.Errorf("the key of the region itself: %s", f)
		}
		err := k.Reregister(p, ChangeAccess, Memory{}, nil, RemoteRead)
		if !errors.Is(err, ErrChange) {
			t.Errorf("a part is registered again: %v", err)
		}
		if err := k.Deregister(r); !errors.Is(err, ErrBusy) {
			t.Errorf("its region is deregistered: %v", err)
		}
		err = k.Reregister(r, ChangeAccess, Memory{}, nil, RemoteRead)
		if !errors.Is(err, ErrBusy) {
			t.Errorf("its region is registered again: %v", err)
		}
		if f := k.Invalidate(mine, r.LKey()); f != FaultBusy {
			t.Errorf("its region is invalidated: %s", f)
		}
		must(t, k.Deregister(p))
		if f := k.Check(peer, last, of.Addr, 20, RemoteWrite); f != FaultNoKey {
			t.Errorf("the key of a part that is gone: %s", f)
		}
		k.Forget(p)
		must(t, k.RegisterAgain(p, peers, of, RemoteWrite|LocalWrite))
	}
	must(t, k.Deregister(p))
	must(t, k.RegisterAgain(p, peers, MemoryOf(b, 0), 0)) // and other memory
	must(t, errors.Join(k.Deregister(r), k.Deregister(p)))
	if err := k.RegisterAgain(p, peers, of, RemoteRead); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("a part of a region that is gone: %v", err)
	}
}

// TestPartOfLayout: a part of a key that stands for others reads and writes these.
func TestPartOfLayout(t *testing.T) {
	k := newKeys(4)
	owner, peers := new(Domain), new(Domain)
	b := make([]byte, 64)
	for i := range b {
		b[i] = byte(i)
	}
	r, err := k.RegisterAt(owner, b, 0, LocalWrite)
	must(t, err)
	laid, err := k.RegisterIndirect(owner, 2)
	must(t, err)
	l, err := NewInterleaved([]uint64{8}, []Block{{Bytes: 4, Strides: []uint64{8}, LKey: r.LKey()}})
	must(t, err)
	lay := func() error {
		return k.ReregisterLayout(laid, ChangeTranslation|ChangeAccess, l, nil, LocalWrite)
	}
	must(t, lay())
	p, err := k.RegisterMemory(peers, Memory{Of: laid, Addr: 6, Length: 20}, RemoteRead)
	must(t, err)
	got := make([]byte, 8)
	a := Accessor{Domain: peers}
	if f := k.Load(a, p.RKey(), 6, got, RemoteRead); f != OK {
		t.Fatal(f)
	}
	if want := []byte{10, 11, 16, 17, 18, 19, 24, 25}; !bytes.Equal(got, want) {
		t.Errorf("%d, not %d", got, want)
	}
	if f := k.Load(a, p.RKey(), 20, got, RemoteRead); f != FaultOutOfRange {
		t.Errorf("behind its end: %s", f)
	}
	if err := lay(); !errors.Is(err, ErrBusy) {
		t.Errorf("the layout is replaced: %v", err)
	}
	must(t, k.Deregister(p))
	must(t, lay())
	must(t, errors.Join(k.Deregister(laid), k.Deregister(r)))
}

// TestPartRefuses: a part that cannot be leaves no trace.
func TestPartRefuses(t *testing.T) {
	k := newKeys(5)
	d := new(Domain)
	r, err := k.RegisterAt(d, make([]byte, 10), 0x100, RemoteRead)
	must(t, err)
	empty, err := k.RegisterIndirect(d, 1)
	must(t, err)
	for _, c := range []struct {
		d      *Domain
		m      Memory
		access Access
		want   error
	}{
		{nil, Memory{Of: r, Addr: 0x100, Length: 1}, 0, ErrNoDomain},
		{d, Memory{Of: r, Addr: 0x100, Length: 1}, RemoteWrite, ErrAccess},
		{d, Memory{Of: r, Addr: 0x100, Length: 1}, FlushPersistent, ErrAccess},
		{d, Memory{Of: r, Addr: 0x100, Length: 1}, LocalWrite, ErrPart},
		{d, Memory{Of: r, Addr: 0x100, Length: 11}, 0, ErrPart},
		{d, Memory{Of: r, Addr: 0xff, Length: 1}, 0, ErrPart},
		{d, Memory{Of: r, Addr: 1<<64 - 1, Length: 2}, 0, ErrPart},
		{d, Memory{Of: empty, Length: 1}, 0, ErrPart},
	} {
		if _, err := k.RegisterMemory(c.d, c.m, c.access); !errors.Is(err, c.want) {
			t.Errorf("%d bytes at %#x with %s: %v", c.m.Length, c.m.Addr, c.access, err)
		}
	}
	if k.Len() != 2 {
		t.Errorf("%d keys", k.Len())
	}
	must(t, errors.Join(k.Deregister(r), k.Deregister(empty)))
}

// TestHold: a region that is held stays as it is, and its owner reads and writes it.
func TestHold(t *testing.T) {
	k := newKeys(6)
	d := new(Domain)
	b := make([]byte, 10)
	r, err := k.RegisterAt(d, b, 0x100, LocalWrite)
	must(t, err)
	constant, err := k.RegisterAt(d, b, 0x100, 0)
	must(t, err)
	for _, n := range []uint64{11, 1<<64 - 1} {
		if err := k.Hold(r, 0x100, n, false); !errors.Is(err, ErrPart) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if err := k.Hold(constant, 0x100, 1, true); !errors.Is(err, ErrPart) {
		t.Errorf("to be written: %v", err)
	}
	must(t, k.Hold(r, 0x102, 8, true))
	if !r.Steady(0x102, 8) {
		t.Error("plain memory is not steady")
	}
	if f := r.Store(0x104, []byte{7, 8}); f != OK || b[4] != 7 || b[5] != 8 {
		t.Errorf("%s: %d", f, b)
	}
	got := make([]byte, 3)
	if f := r.Load(0x103, got); f != OK || !bytes.Equal(got, []byte{0, 7, 8}) {
		t.Errorf("%s: %d", f, got)
	}
	if err := k.Deregister(r); !errors.Is(err, ErrBusy) {
		t.Errorf("it is deregistered: %v", err)
	}
	k.LetGo(r)
	must(t, errors.Join(k.Deregister(r), k.Deregister(constant)))
	if err := k.Hold(r, 0x100, 1, false); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("what is gone: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
