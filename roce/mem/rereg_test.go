package mem

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

// TestReregChangeSets: each of the seven sets of changes changes what it names and
// nothing else, under the same key.
func TestReregChangeSets(t *testing.T) {
	for what := ChangeTranslation; what <= changeKnown; what++ {
		k, d, other := newKeys(uint64(what)), new(Domain), new(Domain)
		before, after := []byte("before"), []byte("afterwards")
		r, err := k.RegisterAt(d, before, 0x1000, LocalWrite|RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		key := r.LKey()
		wantBytes, wantAddr := before, uint64(0x1000)
		wantDomain, wantAccess := d, LocalWrite|RemoteRead
		if what&ChangeTranslation != 0 {
			wantBytes, wantAddr = after, 0x5000
		}
		if what&ChangePD != 0 {
			wantDomain = other
		}
		if what&ChangeAccess != 0 {
			wantAccess = LocalWrite | RemoteWrite
		}
		m := Memory{Bytes: after, Addr: 0x5000}
		err = k.Reregister(r, what, m, other, LocalWrite|RemoteWrite)
		if err != nil {
			t.Fatalf("%03b: %v", what, err)
		}
		if r.LKey() != key || r.RKey() != key || r.Domain() != wantDomain ||
			r.Access() != wantAccess || r.Addr() != wantAddr ||
			!bytes.Equal(r.Bytes(), wantBytes) || r.Len() != uint64(len(wantBytes)) {
			t.Errorf("%03b: key %#x %t %s %#x %q", what, r.LKey(), r.Domain() == wantDomain,
				r.Access(), r.Addr(), r.Bytes())
		}
		got := make([]byte, len(wantBytes))
		f := k.Load(wantDomain.Local(), key, wantAddr, got, wantAccess&remote&^RemoteWrite)
		if f != OK || !bytes.Equal(got, wantBytes) {
			t.Errorf("%03b: %s, %q", what, f, got)
		}
		if what&ChangePD != 0 {
			if f := k.Check(d.Local(), key, wantAddr, 1, 0); f != FaultDomain {
				t.Errorf("%03b: the domain before: %s", what, f)
			}
		}
		if what&ChangeAccess != 0 {
			if f := k.Check(wantDomain.Local(), key, wantAddr, 1, RemoteRead); f != FaultRights {
				t.Errorf("%03b: the rights before: %s", what, f)
			}
		}
	}
}

// TestReregIgnoresUnnamedArguments: what the flags do not name may be nonsense.
func TestReregIgnoresUnnamedArguments(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 8), 0)
	if err != nil {
		t.Fatal(err)
	}
	nonsense := Memory{Addr: math.MaxUint64, Length: 5}
	if err := k.Reregister(r, ChangeAccess, nonsense, nil, RemoteRead); err != nil {
		t.Error(err)
	}
	if err := k.Reregister(r, ChangePD, nonsense, new(Domain), RemoteWrite); err != nil {
		t.Error(err)
	}
	m := Memory{Bytes: make([]byte, 9)}
	if err := k.Reregister(r, ChangeTranslation, m, nil, 1<<17); err != nil {
		t.Error(err)
	}
	if r.Access() != RemoteRead || r.Len() != 9 {
		t.Errorf("%s, %d bytes", r.Access(), r.Len())
	}
}

// TestReregZeroBased: addresses become offsets and addresses again, with the memory
// staying where it is.
func TestReregZeroBased(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.RegisterAt(d, make([]byte, 8), 0x1000, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Reregister(r, ChangeAccess, Memory{}, nil, ZeroBased); err != nil || r.Addr() != 0 {
		t.Errorf("%v, at %#x", err, r.Addr())
	}
	err = k.Reregister(r, ChangeAccess, Memory{}, nil, ZeroBased|RemoteRead)
	if err != nil || r.Addr() != 0 {
		t.Errorf("%v, at %#x", err, r.Addr())
	}
	err = k.Reregister(r, ChangeAccess, Memory{}, nil, RemoteRead)
	if err != nil || r.Addr() != address(r.Bytes()) {
		t.Errorf("%v, at %#x", err, r.Addr())
	}
}

// TestReregErrorsNameArgument name what is wrong and leave the region as it
// was.
func TestReregErrorsNameArgument(t *testing.T) {
	d := new(Domain)
	good := Memory{Bytes: make([]byte, 8), Addr: 0x9000}
	for _, tt := range []struct {
		name   string
		what   Change
		m      Memory
		d      *Domain
		access Access
		want   error
		says   string
	}{
		{"no change", 0, good, d, 0, ErrChange, "flags 0x0"},
		{"unknown change", 8, good, d, 0, ErrChange, "flags 0x8"},
		{"known and unknown", 0x87, good, d, 0, ErrChange, "flags 0x87"},
		{"no bytes", ChangeTranslation, Memory{Addr: 8}, d, 0, ErrChange, "translation"},
		{
			"wraps", ChangeTranslation,
			Memory{Bytes: make([]byte, 8), Addr: math.MaxUint64 - 3},
			d,
			0, ErrRange, "0xfffffffffffffffc",
		},
		{"no domain", ChangePD, good, nil, 0, ErrChange, "protection domain"},
		{"write without LOCAL_WRITE", ChangeAccess, good, d, RemoteWrite, ErrAccess, "LOCAL_WRITE"},
		{"unknown flag", ChangeAccess, good, d, 1 << 15, ErrAccess, "UNKNOWN"},
		{"on demand", ChangeAccess, good, d, OnDemand, ErrAccess, "ON_DEMAND"},
		{
			"zero based at an address", ChangeAccess | ChangeTranslation, good, d, ZeroBased,
			ErrAccess, "ZERO_BASED",
		},
		{"not persistent", ChangeAccess, good, d, FlushPersistent, ErrAccess, "FLUSH_PERSISTENT"},
		{"all, one bad", changeKnown, good, d, RemoteAtomic, ErrAccess, "REMOTE_ATOMIC"},
	} {
		k := newKeys(3)
		r, err := k.RegisterAt(d, []byte("memory"), 0x1000, RemoteRead)
		if err != nil {
			t.Fatal(err)
		}
		before, epoch := r.now(), k.Epoch()
		err = k.Reregister(r, tt.what, tt.m, tt.d, tt.access)
		if !errors.Is(err, tt.want) || !strings.Contains(fmt.Sprint(err), tt.says) {
			t.Errorf("%s: %v, want %v with %q", tt.name, err, tt.want, tt.says)
		}
		if r.now() != before || k.Epoch() != epoch {
			t.Errorf("%s: refused, and changed", tt.name)
		}
		since := Accessor{Domain: d, Since: epoch}
		if f := k.Check(since, r.RKey(), 0x1000, 6, RemoteRead); f != OK {
			t.Errorf("%s: then %s", tt.name, f)
		}
	}
}

// TestReregRefused: not while windows are bound, not an invalidated region, not one
// that is gone.
func TestReregRefused(t *testing.T) {
	s := newWindowStand(t)
	w := s.bound(t, WindowType2, 0, 8, RemoteRead)
	m := Memory{Bytes: make([]byte, 8)}
	for what := ChangeTranslation; what <= changeKnown; what++ {
		err := s.k.Reregister(s.region, what, m, s.domain, LocalWrite|MWBind)
		if !errors.Is(err, ErrBusy) {
			t.Errorf("%03b with a window: %v", what, err)
		}
	}
	if err := s.k.DeallocWindow(w); err != nil {
		t.Fatal(err)
	}
	if err := s.k.Reregister(s.region, ChangeAccess, m, nil, Invalidatable); err != nil {
		t.Fatal(err)
	}
	if f := s.k.Invalidate(s.local(), s.region.LKey()); f != OK {
		t.Fatal(f)
	}
	if err := s.k.Reregister(s.region, ChangeAccess, m, nil, 0); !errors.Is(err, ErrChange) {
		t.Errorf("invalidated: %v", err)
	}
	if err := s.k.Deregister(s.region); err != nil {
		t.Fatal(err)
	}
	if err := s.k.Reregister(s.region, ChangeAccess, m, nil, 0); !errors.Is(err, ErrNotRegistered) {
		t.Errorf("deregistered: %v", err)
	}
}

// TestReregNeverMixes: a message that began before the change is refused at every
// step behind it, whatever changed; one that begins then is not.
func TestReregNeverMixes(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.RegisterAt(d, make([]byte, 64), 0x1000, volatile)
	if err != nil {
		t.Fatal(err)
	}
	still, err := k.RegisterAt(d, make([]byte, 64), 0x1000, volatile)
	if err != nil {
		t.Fatal(err)
	}
	for what := ChangeTranslation; what <= changeKnown; what++ {
		old := Accessor{Domain: d, Since: k.Epoch()}
		if f := k.Store(old, r.RKey(), 0x1000, make([]byte, 8), RemoteWrite); f != OK {
			t.Fatalf("%03b: %s", what, f)
		}
		m := Memory{Bytes: make([]byte, 64), Addr: 0x1000}
		if err := k.Reregister(r, what, m, d, volatile); err != nil {
			t.Fatal(err)
		}
		fresh := Accessor{Domain: d, Since: k.Epoch()}
		for _, tt := range []struct {
			by   Accessor
			key  uint32
			want Fault
		}{
			{old, r.RKey(), FaultChanged},
			{fresh, r.RKey(), OK},
			{d.Local(), r.RKey(), OK},
			{old, still.RKey(), OK}, // other keys are no matter
		} {
			if f := k.Store(tt.by, tt.key, 0x1008, make([]byte, 8), RemoteWrite); f != tt.want {
				t.Errorf("%03b: store %s, want %s", what, f, tt.want)
			}
			got := k.Load(tt.by, tt.key, 0x1008, make([]byte, 8), RemoteRead)
			if got != tt.want {
				t.Errorf("%03b: load %s, want %s", what, got, tt.want)
			}
		}
	}
}

// TestEpochDoesNotWrap: a key that stays as it is grants for ever, however many
// changes of others there are.
func TestEpochDoesNotWrap(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 8), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Reregister(r, ChangeAccess, Memory{}, nil, RemoteRead); err != nil {
		t.Fatal(err)
	}
	for _, later := range []uint64{1 << 31, 1<<31 + 2, 1 << 32, 1 << 40} {
		k.epoch.changes.Store(later)
		by := Accessor{Domain: d, Since: k.Epoch()}
		if f := k.Check(by, r.RKey(), r.Addr(), 8, RemoteRead); f != OK {
			t.Errorf("%d changes later: %s", later, f)
		}
	}
}
