package mem

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

func TestInvalidate(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	b := []byte("untouched")
	r, err := k.Register(d, b, volatile)
	if err != nil {
		t.Fatal(err)
	}
	key := r.RKey()
	if err := k.Validate(r, 1); !errors.Is(err, ErrNotInvalidated) || r.RKey() != key {
		t.Errorf("a valid region made valid: %v, key %#x was %#x", err, r.RKey(), key)
	}
	if f := k.Invalidate(d.Local(), key); f != OK || r.Valid() {
		t.Fatalf("%s, valid %t", f, r.Valid())
	}
	// Not even nothing can be accessed.
	if f := k.Check(d.Local(), key, r.Addr(), 0, 0); f != FaultInvalid {
		t.Error(f)
	}
	if f := k.Invalidate(d.Local(), key); f != FaultInvalid {
		t.Errorf("invalidated twice: %s", f)
	}
	if string(b) != "untouched" || r.RKey() != key {
		t.Errorf("memory is %q, key %#x was %#x", b, r.RKey(), key)
	}
	next := uint8(key) + 1
	if err := k.Validate(r, next); err != nil || !r.Valid() {
		t.Fatalf("%v, valid %t", err, r.Valid())
	}
	if r.RKey() != key&^0xff|uint32(next) || r.LKey() != r.RKey() {
		t.Errorf("keys %#x and %#x, was %#x", r.LKey(), r.RKey(), key)
	}
	if f := k.Check(d.Local(), key, r.Addr(), 1, 0); f != FaultNoKey {
		t.Errorf("the old key: %s", f)
	}
	if f := k.Check(d.Local(), r.RKey(), r.Addr(), len(b), RemoteRead); f != OK {
		t.Errorf("the new key: %s", f)
	}
}

// TestInvalidateRefuses ordinary regions, whatever else they grant.
func TestInvalidateRefuses(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 8), LocalWrite|RemoteWrite|RemoteRead|RemoteAtomic)
	if err != nil {
		t.Fatal(err)
	}
	if f := k.Invalidate(d.Local(), r.RKey()); f != FaultRights || !r.Valid() {
		t.Errorf("%s, valid %t", f, r.Valid())
	}
}

// TestValidateNeedsRegistration: a region that was deregistered, or is that of
// another device, stays as it is.
func TestValidateNeedsRegistration(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 8), Invalidatable)
	if err != nil {
		t.Fatal(err)
	}
	if f := k.Invalidate(d.Local(), r.RKey()); f != OK {
		t.Fatal(f)
	}
	if err := newKeys(1).Validate(r, 0); !errors.Is(err, ErrNotRegistered) || r.Valid() {
		t.Errorf("other keys: %v", err)
	}
	if err := k.Deregister(r); err != nil {
		t.Error("an invalid region cannot be deregistered")
	}
	if err := k.Validate(r, 0); !errors.Is(err, ErrNotRegistered) || r.Valid() {
		t.Errorf("deregistered: %v", err)
	}
}

// TestInvalidateOnce: of many that invalidate a key, one does it each time.
func TestInvalidateOnce(t *testing.T) {
	const rounds, rivals = 300, 4
	k, d := newKeys(1), new(Domain)
	r, err := k.Register(d, make([]byte, 8), Invalidatable|RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		var done atomic.Int32
		var wg sync.WaitGroup
		key := r.RKey()
		for range rivals {
			wg.Go(func() {
				k.Check(d.Local(), key, r.Addr(), 8, RemoteRead)
				switch f := k.Invalidate(d.Local(), key); f {
				case OK:
					done.Add(1)
				case FaultInvalid:
				default:
					t.Error(f)
				}
			})
		}
		wg.Wait()
		if done.Load() != 1 {
			t.Fatalf("round %d: invalidated %d times", round, done.Load())
		}
		if err := k.Validate(r, uint8(round)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestKeyModel: a key answers as a plain list of what was done to it says.
func TestKeyModel(t *testing.T) {
	type known struct {
		r                 *Region
		access            Access
		key               uint32
		valid, registered bool
	}
	rapid.Check(t, func(t *rapid.T) {
		k, d := newKeys(rapid.Uint64().Draw(t, "seed")), new(Domain)
		var all []*known
		pick := func(t *rapid.T) *known {
			if len(all) == 0 {
				t.Skip("no region")
			}
			return rapid.SampledFrom(all).Draw(t, "region")
		}
		fault := func(m *known, need Access) Fault {
			switch {
			case !m.registered:
				return FaultNoKey
			case !m.valid:
				return FaultInvalid
			case need&^m.access != 0:
				return FaultRights
			}
			return OK
		}
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				live := 0
				for _, m := range all {
					want := fault(m, RemoteRead)
					if got := k.Check(d.Local(), m.key, m.r.Addr(), 8, RemoteRead); got != want {
						t.Fatalf("key %#x: %s, want %s", m.key, got, want)
					}
					if m.registered {
						live++
					}
				}
				if k.Len() != live {
					t.Fatalf("%d regions, want %d", k.Len(), live)
				}
			},
			"register": func(t *rapid.T) {
				access := rapid.SampledFrom([]Access{
					0, RemoteRead, Invalidatable, Invalidatable | RemoteRead,
				}).Draw(t, "access")
				r, err := k.Register(d, make([]byte, 8), access)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, &known{r, access, r.RKey(), true, true})
			},
			"deregister": func(t *rapid.T) {
				m := pick(t)
				if (k.Deregister(m.r) == nil) != m.registered {
					t.Fatal("not as often as registered")
				}
				m.registered = false
			},
			"invalidate": func(t *rapid.T) {
				m := pick(t)
				want := fault(m, Invalidatable)
				if got := k.Invalidate(d.Local(), m.key); got != want {
					t.Fatalf("%s, want %s", got, want)
				}
				m.valid = m.valid && want != OK
			},
			"validate": func(t *rapid.T) {
				m, variant := pick(t), rapid.Uint8().Draw(t, "variant")
				err := k.Validate(m.r, variant)
				if (err == nil) != (m.registered && !m.valid) {
					t.Fatal(err)
				}
				if err == nil {
					m.valid, m.key = true, m.key&^0xff|uint32(variant)
				}
			},
		})
	})
}

// TestInvalidateWindow: who may free which window, and what is left of it.
func TestInvalidateWindow(t *testing.T) {
	for _, tt := range []struct {
		name string
		typ  WindowType
		by   func(s *windowStand) Accessor
		key  func(key uint32) uint32
		want Fault
	}{
		{"by its domain", WindowType2, (*windowStand).local, nil, OK},
		{"by the peer of its QP", WindowType2, (*windowStand).party, nil, OK},
		{"by the peer of another QP", WindowType2, func(s *windowStand) Accessor {
			return s.other
		}, nil, FaultParty},
		{"by another domain", WindowType2, func(s *windowStand) Accessor {
			return s.foreign.Domain.Local()
		}, nil, FaultDomain},
		{"by a peer of another domain", WindowType2, func(s *windowStand) Accessor {
			return s.foreign
		}, nil, FaultDomain},
		{"with another tag", WindowType2, (*windowStand).local, func(key uint32) uint32 {
			return key ^ 1
		}, FaultNoKey},
		{"type 1 by its domain", WindowType1, (*windowStand).local, nil, FaultRights},
		{"type 1 by a peer", WindowType1, (*windowStand).party, nil, FaultRights},
	} {
		s := newWindowStand(t)
		w := s.bound(t, tt.typ, 0, 64, RemoteRead)
		key := w.RKey()
		if tt.key != nil {
			key = tt.key(key)
		}
		if f := s.k.Invalidate(tt.by(s), key); f != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, f, tt.want)
		}
		if free := !w.Bound() && s.region.users == 0; free != (tt.want == OK) {
			t.Errorf("%s: bound %t, the region has %d users", tt.name, w.Bound(), s.region.users)
		}
		want := FaultInvalid
		if tt.want != OK {
			want = OK
		}
		if f := s.k.Check(s.owner, w.RKey(), standAddr, 64, RemoteRead); f != want {
			t.Errorf("%s: then %s, want %s", tt.name, f, want)
		}
		if tt.want == OK {
			if f := s.k.Invalidate(s.local(), w.RKey()); f != FaultInvalid {
				t.Errorf("%s: twice: %s", tt.name, f)
			}
			// Another QP binds it to other bytes now.
			if f := s.k.Bind(s.other, s.to(w, 64, 64, RemoteWrite)); f != OK {
				t.Errorf("%s: bound again: %s", tt.name, f)
			}
			if f := s.k.Check(s.other, w.RKey(), standAddr+64, 64, RemoteWrite); f != OK {
				t.Errorf("%s: used again: %s", tt.name, f)
			}
			if f := s.k.Check(s.owner, w.RKey(), standAddr+64, 64, RemoteWrite); f != FaultParty {
				t.Errorf("%s: used by the QP before: %s", tt.name, f)
			}
		}
	}
}

func (s *windowStand) local() Accessor { return s.domain.Local() }
func (s *windowStand) party() Accessor { return s.owner }

// TestInvalidateUnboundWindow: a window that was never bound cannot be freed.
func TestInvalidateUnboundWindow(t *testing.T) {
	s := newWindowStand(t)
	w := s.alloc(t, WindowType2)
	for _, by := range []Accessor{s.local(), s.owner} {
		if f := s.k.Invalidate(by, w.RKey()); f != FaultInvalid {
			t.Error(f)
		}
	}
}

// TestInvalidateRegionWithWindows: a region that windows are bound to cannot be
// invalidated under them.
func TestInvalidateRegionWithWindows(t *testing.T) {
	s := newWindowStand(t)
	r, err := s.k.RegisterAt(s.domain, s.bytes, standAddr, LocalWrite|MWBind|Invalidatable)
	if err != nil {
		t.Fatal(err)
	}
	s.region = r
	w := s.bound(t, WindowType2, 0, 8, RemoteRead)
	if f := s.k.Invalidate(s.local(), r.LKey()); f != FaultBusy || !r.Valid() {
		t.Errorf("%s, valid %t", f, r.Valid())
	}
	if f := s.k.Invalidate(s.local(), w.RKey()); f != OK {
		t.Fatal(f)
	}
	if f := s.k.Invalidate(s.local(), r.LKey()); f != OK {
		t.Error(f)
	}
}
