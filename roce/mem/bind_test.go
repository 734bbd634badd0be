package mem

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestBindType1: every bind kills the key before it, nothing unbinds, and every QP
// of the domain may use the window.
func TestBindType1(t *testing.T) {
	s := newWindowStand(t)
	w := s.alloc(t, WindowType1)
	var keys []uint32
	for i := range uint64(300) { // the low 8 bits come round
		keys = append(keys, w.RKey())
		if f := s.k.Bind(s.owner, s.to(w, i, 8, RemoteRead)); f != OK {
			t.Fatalf("bind %d: %s", i, f)
		}
		if i > 0 && w.RKey() == keys[i] {
			t.Fatalf("bind %d: the key stays %#x", i, w.RKey())
		}
		if f := s.k.Check(s.owner, keys[i], standAddr+i, 1, RemoteRead); f != FaultNoKey {
			t.Fatalf("bind %d: the old key: %s", i, f)
		}
		for _, by := range []Accessor{s.owner, s.other, s.domain.Local()} {
			if f := s.k.Check(by, w.RKey(), standAddr+i, 8, RemoteRead); f != OK {
				t.Fatalf("bind %d: %s", i, f)
			}
		}
	}
	bound := w.RKey()
	unbind := s.to(w, 0, 0, RemoteRead)
	unbind.LKey, unbind.Addr = 0xdead, math.MaxUint64
	if f := s.k.Bind(s.other, unbind); f != OK || w.Bound() || w.Access() != 0 {
		t.Errorf("unbound: %s, %t, %s", f, w.Bound(), w.Access())
	}
	for _, key := range []uint32{bound, w.RKey()} {
		if f := s.k.Check(s.owner, key, standAddr, 0, RemoteRead); f == OK {
			t.Errorf("key %#x still grants", key)
		}
	}
}

// TestBindType2: bound once, by one QP, under a key of its choice.
func TestBindType2(t *testing.T) {
	s := newWindowStand(t)
	w := s.alloc(t, WindowType2)
	first := w.RKey()
	bind := s.to(w, 64, 128, RemoteRead|RemoteWrite)
	bind.NewKey = first ^ 0x5a
	if f := s.k.Bind(s.owner, bind); f != OK {
		t.Fatal(f)
	}
	if w.RKey() != first^0x5a || !w.Bound() || w.Addr() != standAddr+64 || w.Len() != 128 ||
		w.Access() != RemoteRead|RemoteWrite {
		t.Errorf("%#x %t %#x %d %s", w.RKey(), w.Bound(), w.Addr(), w.Len(), w.Access())
	}
	for _, tt := range []struct {
		name string
		by   Accessor
		key  uint32
		want Fault
	}{
		{"the QP", s.owner, w.RKey(), OK},
		{"another QP", s.other, w.RKey(), FaultParty},
		{"another domain", s.foreign, w.RKey(), FaultDomain},
		{"its QP, another domain", Accessor{new(Domain), s.owner.Party, 0}, w.RKey(), FaultDomain},
		{"a work request", s.domain.Local(), w.RKey(), FaultParty},
		{"the key before", s.owner, first, FaultNoKey},
	} {
		if f := s.k.Check(tt.by, tt.key, standAddr+64, 128, RemoteRead); f != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, f, tt.want)
		}
	}
	for _, by := range []Accessor{s.owner, s.other} {
		if f := s.k.Bind(by, s.to(w, 0, 8, RemoteRead)); f != FaultInvalid {
			t.Errorf("bound twice: %s", f)
		}
	}
	if f := s.k.Check(s.owner, bind.NewKey, standAddr+64, 128, RemoteWrite); f != OK {
		t.Errorf("after refused binds: %s", f)
	}
}

// TestBindType2A compares the QP alone, and nothing else than the QP.
func TestBindType2A(t *testing.T) {
	s := newWindowStand(t)
	s.k.SetWindows2A()
	w := s.bound(t, WindowType2, 0, 8, RemoteRead)
	elsewhere := Accessor{Domain: s.foreign.Domain, Party: s.owner.Party}
	for _, tt := range []struct {
		name string
		by   Accessor
		want Fault
	}{
		{"the QP", s.owner, OK},
		{"the QP with another domain", elsewhere, OK},
		{"another QP", s.other, FaultParty},
		{"a QP of another domain", s.foreign, FaultParty},
		{"a work request of another domain", s.foreign.Domain.Local(), FaultParty},
	} {
		if f := s.k.Check(tt.by, w.RKey(), standAddr, 8, RemoteRead); f != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, f, tt.want)
		}
	}
	// Work requests are told apart by domain: there is no QP that could be.
	if f := s.k.Invalidate(s.foreign.Domain.Local(), w.RKey()); f != FaultDomain {
		t.Errorf("invalidated by another domain: %s", f)
	}
	if f := s.k.Invalidate(elsewhere, w.RKey()); f != OK {
		t.Errorf("invalidated by its QP: %s", f)
	}
	if f := s.k.Bind(s.foreign, s.to(w, 0, 8, 0)); f != FaultDomain {
		t.Errorf("bound by another domain: %s", f)
	}
	if !s.k.Windows2A() || newKeys(1).Windows2A() {
		t.Error("a device has 2A or 2B")
	}
}

// TestBindChecks: each check of a bind, and that a refused one changes nothing.
func TestBindChecks(t *testing.T) {
	type change func(s *windowStand, by *Accessor, b *Bind)
	region := func(access Access) change {
		return func(s *windowStand, _ *Accessor, b *Bind) {
			m := Memory{Bytes: s.bytes, Addr: standAddr}
			if access&ZeroBased != 0 {
				m.Addr, b.Addr = 0, 0
			}
			r, err := s.k.RegisterMemory(s.domain, m, access)
			if err != nil {
				panic(err)
			}
			b.LKey = r.LKey()
		}
	}
	for _, tt := range []struct {
		name         string
		change       change
		type1, type2 Fault
	}{
		{"good", func(*windowStand, *Accessor, *Bind) {}, OK, OK},
		{"all of it", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Addr, b.Length = standAddr, 4096
		}, OK, OK},
		{"the same key again", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.NewKey = b.Window
		}, OK, OK},
		{"not the present key", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Window ^= 1
		}, FaultNoKey, FaultNoKey},
		{"no such window", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Window, b.NewKey = b.Window^1<<20, b.NewKey^1<<20
		}, FaultNoKey, FaultNoKey},
		{"a region's key", func(s *windowStand, _ *Accessor, b *Bind) {
			b.Window, b.NewKey = s.region.LKey(), s.region.LKey()
		}, FaultNoKey, FaultNoKey},
		{"another index", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.NewKey ^= 1 << 8
		}, FaultNoKey, FaultNoKey},
		{"a QP of another domain", func(s *windowStand, by *Accessor, _ *Bind) {
			*by = s.foreign
		}, FaultDomain, FaultDomain},
		{"no length", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Length = 0
		}, OK, FaultOutOfRange},
		{"zero based", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access |= ZeroBased
		}, FaultRights, OK},
		{"zero based and no length", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access, b.Length = ZeroBased, 0
		}, FaultRights, FaultOutOfRange},
		{"not the region's key", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.LKey ^= 1
		}, FaultNoKey, FaultNoKey},
		{"a window for a region", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.LKey = b.Window
		}, FaultNoKey, FaultNoKey},
		{"a region without MW_BIND", region(LocalWrite | RemoteRead), FaultRights, FaultRights},
		{"a zero-based region", region(LocalWrite | MWBind | ZeroBased), FaultRights, FaultRights},
		{"a region without LOCAL_WRITE", region(MWBind), FaultRights, FaultRights},
		{"to read, a region without LOCAL_WRITE", func(s *windowStand, by *Accessor, b *Bind) {
			region(MWBind)(s, by, b)
			b.Access = RemoteRead | FlushGlobal
		}, OK, OK},
		{"atomics, a region without LOCAL_WRITE", func(s *windowStand, by *Accessor, b *Bind) {
			region(MWBind)(s, by, b)
			b.Access = RemoteAtomic
		}, FaultRights, FaultRights},
		{"an invalidated region", func(s *windowStand, by *Accessor, b *Bind) {
			region(LocalWrite|MWBind|Invalidatable)(s, by, b)
			s.k.Invalidate(s.domain.Local(), b.LKey)
		}, FaultInvalid, FaultInvalid},
		{"a region of another domain", func(s *windowStand, _ *Accessor, b *Bind) {
			r, err := s.k.RegisterAt(s.foreign.Domain, s.bytes, standAddr, LocalWrite|MWBind)
			if err != nil {
				panic(err)
			}
			b.LKey = r.LKey()
		}, FaultDomain, FaultDomain},
		{"LOCAL_WRITE", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access |= LocalWrite
		}, FaultRights, FaultRights},
		{"MW_BIND", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access |= MWBind
		}, FaultRights, FaultRights},
		{"local reading", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access |= localRead
		}, FaultRights, FaultRights},
		{"an unknown flag", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access |= 1 << 15
		}, FaultRights, FaultRights},
		{"persistence that the memory has not", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Access |= FlushPersistent
		}, FaultRights, FaultRights},
		{"one byte before", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Addr = standAddr - 1
		}, FaultOutOfRange, FaultOutOfRange},
		{"one byte behind", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Addr, b.Length = standAddr+1, 4096
		}, FaultOutOfRange, FaultOutOfRange},
		{"as long as there are numbers", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Length = math.MaxUint64
		}, FaultOutOfRange, FaultOutOfRange},
		{"beyond the end of addresses", func(_ *windowStand, _ *Accessor, b *Bind) {
			b.Addr, b.Length = math.MaxUint64, 2
		}, FaultOutOfRange, FaultOutOfRange},
	} {
		for typ, want := range map[WindowType]Fault{
			WindowType1: tt.type1, WindowType2: tt.type2,
		} {
			s := newWindowStand(t)
			w := s.alloc(t, typ)
			b, by := s.to(w, 16, 64, RemoteRead|RemoteWrite|RemoteAtomic), s.owner
			tt.change(s, &by, &b)
			before, users := *w.view.Load(), s.region.users
			if f := s.k.Bind(by, b); f != want {
				t.Errorf("%s, type %d: %s, want %s", tt.name, typ, f, want)
			}
			if after := *w.view.Load(); want != OK && (after.key != before.key ||
				after.valid != before.valid || after.target != nil || s.region.users != users) {
				t.Errorf("%s, type %d: refused, and changed: %+v", tt.name, typ, after)
			}
		}
	}
}

// TestBindRefusedKeepsType1 leaves a bound window of type 1 as it was.
func TestBindRefusedKeepsType1(t *testing.T) {
	s := newWindowStand(t)
	w := s.bound(t, WindowType1, 0, 64, RemoteRead)
	key := w.RKey()
	if f := s.k.Bind(s.owner, s.to(w, 4096, 1, RemoteRead)); f != FaultOutOfRange {
		t.Fatal(f)
	}
	if f := s.k.Check(s.other, key, standAddr, 64, RemoteRead); f != OK || s.region.users != 1 {
		t.Errorf("%s, %d users", f, s.region.users)
	}
	// To another region: the first one is free, the second is not.
	other, err := s.k.Register(s.domain, make([]byte, 64), LocalWrite|MWBind)
	if err != nil {
		t.Fatal(err)
	}
	b := s.to(w, 0, 64, RemoteWrite)
	b.LKey, b.Addr = other.LKey(), other.Addr()
	if f := s.k.Bind(s.owner, b); f != OK {
		t.Fatal(f)
	}
	if err := s.k.Deregister(other); !errors.Is(err, ErrBusy) {
		t.Error(err)
	}
	if err := s.k.Deregister(s.region); err != nil {
		t.Error(err)
	}
}

// TestWindowRightsAndBounds: a window gives its own rights inside its own
// bounds, whatever its region gives, by every way to access memory.
func TestWindowRightsAndBounds(t *testing.T) {
	const off, n = 1024, 256
	grants := []Access{
		0, RemoteRead, RemoteWrite, RemoteAtomic, FlushGlobal, FlushPersistent,
		RemoteRead | RemoteWrite | RemoteAtomic | FlushGlobal | FlushPersistent,
	}
	for _, zeroBased := range []bool{false, true} {
		for _, grant := range grants {
			k, d := newKeys(5), new(Domain)
			by := Accessor{Domain: d, Party: new(Party)}
			b := bytes.Repeat([]byte{0xff}, 4096)
			var synced [][2]int
			m := Memory{Bytes: b, Addr: standAddr, Sync: func(off, n int) error {
				synced = append(synced, [2]int{off, n})
				return nil
			}}
			r, err := k.RegisterMemory(d, m, LocalWrite|MWBind)
			if err != nil {
				t.Fatal(err)
			}
			w, err := k.AllocWindow(d, WindowType2)
			if err != nil {
				t.Fatal(err)
			}
			bind := Bind{w.RKey(), NextKey(w.RKey()), r.LKey(), standAddr + off, n, grant}
			base := uint64(standAddr + off)
			if zeroBased {
				bind.Access |= ZeroBased
				base = 0
			}
			if f := k.Bind(by, bind); f != OK {
				t.Fatal(f)
			}
			for _, c := range boundsCalls {
				last := base + n - c.n
				for _, at := range []uint64{base - 8, base, last, last + 8, base + n} {
					want := OK
					switch {
					case c.need&^grant != 0:
						want = FaultRights
					case at-base > n-c.n:
						want = FaultOutOfRange
					}
					if f := c.do(k, by, w.RKey(), at); f != want {
						t.Errorf("%s at base%+d, window with %s: %s, want %s", c.name,
							int64(at-base), bind.Access, f, want)
					}
				}
			}
			untouched := bytes.Repeat([]byte{0xff}, len(b))
			if !bytes.Equal(b[:off], untouched[:off]) ||
				!bytes.Equal(b[off+n:], untouched[off+n:]) {
				t.Error("memory outside the window was written")
			}
			checkSynced(t, k, by, w, base, grant, &synced)
		}
	}
}

// boundsCalls are the ways to access 8 or 16 bytes.
var boundsCalls = []struct {
	name string
	need Access
	n    uint64
	do   func(k *Keys, by Accessor, key uint32, addr uint64) Fault
}{
	{"Load", RemoteRead, 16, func(k *Keys, by Accessor, key uint32, addr uint64) Fault {
		return k.Load(by, key, addr, make([]byte, 16), RemoteRead)
	}},
	{"Store", RemoteWrite, 16, func(k *Keys, by Accessor, key uint32, addr uint64) Fault {
		return k.Store(by, key, addr, make([]byte, 16), RemoteWrite)
	}},
	{"FetchAdd", RemoteAtomic, 8, func(k *Keys, by Accessor, key uint32, addr uint64) Fault {
		_, f := k.FetchAdd(by, key, addr, 1)
		return f
	}},
	{"CompareSwap", RemoteAtomic, 8, func(k *Keys, by Accessor, key uint32, addr uint64) Fault {
		_, f := k.CompareSwap(by, key, addr, math.MaxUint64, 1)
		return f
	}},
	{"StoreWord", RemoteWrite, 8, func(k *Keys, by Accessor, key uint32, addr uint64) Fault {
		return k.StoreWord(by, key, addr, 1)
	}},
	{"Flush", FlushGlobal, 16, func(k *Keys, by Accessor, key uint32, addr uint64) Fault {
		return flush(k, by, key, addr, 16, false, false)
	}},
	{"Flush persistent", FlushPersistent, 16, func(
		k *Keys, by Accessor, key uint32, addr uint64,
	) Fault {
		return flush(k, by, key, addr, 16, false, true)
	}},
}

// checkSynced: FLUSH of a part and of all of a window reach just those bytes of the
// region.
func checkSynced(t *testing.T, k *Keys, by Accessor, w *Window, base uint64, grant Access,
	synced *[][2]int,
) {
	t.Helper()
	if grant&FlushPersistent == 0 {
		if len(*synced) != 0 {
			t.Errorf("synced without the right: %v", *synced)
		}
		return
	}
	*synced = nil
	if f := flush(k, by, w.RKey(), base+8, 24, false, true); f != OK {
		t.Error(f)
	}
	if f := flush(k, by, w.RKey(), 0, -1, true, true); f != OK {
		t.Error(f)
	}
	if len(*synced) != 2 || (*synced)[0] != [2]int{1024 + 8, 24} ||
		(*synced)[1] != [2]int{1024, 256} {
		t.Errorf("synced %v", *synced)
	}
}

// TestWindowKeyIsNoLKey: the key of a window is no L_Key.
func TestWindowKeyIsNoLKey(t *testing.T) {
	for _, typ := range []WindowType{WindowType1, WindowType2} {
		s := newWindowStand(t)
		w := s.bound(t, typ, 0, 64, RemoteRead|RemoteWrite)
		for _, by := range []Accessor{s.owner, s.domain.Local()} {
			for _, need := range []Access{0, LocalWrite} {
				if f := s.k.Check(by, w.RKey(), standAddr, 8, need); f == OK {
					t.Errorf("type %d: a work request may use it for %s", typ, need)
				}
			}
		}
	}
}
