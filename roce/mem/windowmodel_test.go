package mem

import (
	"bytes"
	"sync"
	"testing"

	"pgregory.net/rapid"
)

// A modelWindow is what a plain list of what was done says of a window.
type modelWindow struct {
	w       *Window
	typ     WindowType
	key     uint32
	bound   bool
	party   *Party
	base    uint64
	off, n  uint64
	access  Access
	retired bool
}

// fault is what a WRITE or a READ of n bytes at addr must come to.
func (m *modelWindow) fault(by Accessor, addr, n uint64, need Access) Fault {
	switch {
	case m.retired:
		return FaultNoKey
	case m.bound && m.typ == WindowType2 && by.Party != m.party:
		return FaultParty
	case !m.bound && m.typ == WindowType2:
		return FaultInvalid
	case need&^m.access != 0:
		return FaultRights
	case addr < m.base || addr-m.base > m.n || n > m.n-(addr-m.base):
		return FaultOutOfRange
	}
	return OK
}

// TestWindowModel binds, uses, frees and deallocates windows of one region in any
// order. Memory is what the accesses made of it that the list lets through, byte for
// byte: nothing outside of a window's rights is written.
func TestWindowModel(t *testing.T) {
	const size = 64
	rapid.Check(t, func(t *rapid.T) {
		k, d := newKeys(rapid.Uint64().Draw(t, "seed")), new(Domain)
		parties := []*Party{new(Party), new(Party)}
		memory, shadow := make([]byte, size), make([]byte, size)
		r, err := k.RegisterAt(d, memory, standAddr, LocalWrite|MWBind)
		if err != nil {
			t.Fatal(err)
		}
		var all []*modelWindow
		stamp := byte(0)
		pick := func(t *rapid.T) *modelWindow {
			if len(all) == 0 {
				t.Skip("no window")
			}
			return rapid.SampledFrom(all).Draw(t, "window")
		}
		as := func(t *rapid.T) Accessor {
			return Accessor{Domain: d, Party: rapid.SampledFrom(parties).Draw(t, "qp")}
		}
		rights := rapid.SampledFrom([]Access{0, RemoteRead, RemoteWrite, RemoteRead | RemoteWrite})
		t.Repeat(map[string]func(*rapid.T){
			"": func(t *rapid.T) {
				if !bytes.Equal(memory, shadow) {
					t.Fatalf("memory is %x, want %x", memory, shadow)
				}
				users := 0
				for _, m := range all {
					if m.bound {
						users++
					}
				}
				if r.users != users {
					t.Fatalf("%d users, want %d", r.users, users)
				}
			},
			"alloc": func(t *rapid.T) {
				typ := rapid.SampledFrom([]WindowType{WindowType1, WindowType2}).Draw(t, "type")
				w, err := k.AllocWindow(d, typ)
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, &modelWindow{w: w, typ: typ, key: w.RKey()})
			},
			"bind": func(t *rapid.T) {
				m, by := pick(t), as(t)
				off := rapid.Uint64Range(0, size).Draw(t, "offset")
				n := rapid.Uint64Range(0, size).Draw(t, "length")
				access := rights.Draw(t, "access")
				if rapid.Bool().Draw(t, "zero based") {
					access |= ZeroBased
				}
				two := m.typ == WindowType2
				good := !m.retired && (!two || !m.bound && n > 0) &&
					(two || access&ZeroBased == 0) && (off+n <= size || n == 0)
				f := k.Bind(by, Bind{
					m.key, NextKey(m.key), r.LKey(), standAddr + off, n, access,
				})
				if (f == OK) != good {
					t.Fatalf("bind: %s, want success %t", f, good)
				}
				if !good {
					return
				}
				m.key, m.bound, m.party, m.access = NextKey(m.key), n > 0, by.Party, access
				if m.base, m.off, m.n = standAddr+off, off, n; access&ZeroBased != 0 {
					m.base = 0
				}
				if n == 0 {
					m.base, m.access = 0, 0
				}
			},
			"invalidate": func(t *rapid.T) {
				m, by := pick(t), as(t)
				if rapid.Bool().Draw(t, "by the owner") {
					by.Party = nil
				}
				good := !m.retired && m.typ == WindowType2 && m.bound &&
					(by.Party == nil || by.Party == m.party)
				if f := k.Invalidate(by, m.key); (f == OK) != good {
					t.Fatalf("invalidate: %s, want success %t", f, good)
				}
				m.bound = m.bound && !good
			},
			"dealloc": func(t *rapid.T) {
				m := pick(t)
				if (k.DeallocWindow(m.w) == nil) == m.retired {
					t.Fatal("not as often as allocated")
				}
				m.retired, m.bound = true, false
			},
			"write": func(t *rapid.T) {
				m, by := pick(t), as(t)
				addr := m.base - 2 + rapid.Uint64Range(0, size+4).Draw(t, "address")
				n := rapid.Uint64Range(0, size).Draw(t, "length")
				stamp++
				data := bytes.Repeat([]byte{stamp}, int(n))
				want := m.fault(by, addr, n, RemoteWrite)
				if f := k.Store(by, m.key, addr, data, RemoteWrite); f != want {
					t.Fatalf("write: %s, want %s", f, want)
				}
				if want == OK {
					copy(shadow[m.off+addr-m.base:], data)
				}
			},
			"read": func(t *rapid.T) {
				m, by := pick(t), as(t)
				addr := m.base - 2 + rapid.Uint64Range(0, size+4).Draw(t, "address")
				data := make([]byte, rapid.Uint64Range(0, size).Draw(t, "length"))
				want := m.fault(by, addr, uint64(len(data)), RemoteRead)
				if f := k.Load(by, m.key, addr, data, RemoteRead); f != want {
					t.Fatalf("read: %s, want %s", f, want)
				}
				if want == OK && !bytes.Equal(data, shadow[m.off+addr-m.base:][:len(data)]) {
					t.Fatalf("read %x", data)
				}
			},
		})
	})
}

// TestReregNeverMixesUnderRace reads a message in two parts while the region changes
// between two memories: both parts are of one, or the second is refused.
func TestReregNeverMixesUnderRace(t *testing.T) {
	const changes = 20_000
	k, d := newKeys(1), new(Domain)
	memories := [2][]byte{bytes.Repeat([]byte{1}, 64), bytes.Repeat([]byte{2}, 64)}
	r, err := k.RegisterAt(d, memories[0], standAddr, RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		wg.Go(func() {
			var parts [2][1]byte
			for {
				select {
				case <-done:
					return
				default:
				}
				by := Accessor{Domain: d, Since: k.Epoch()}
				if k.Load(by, r.RKey(), standAddr, parts[0][:], RemoteRead) != OK {
					continue
				}
				if f := k.Load(by, r.RKey(), standAddr+63, parts[1][:], RemoteRead); f == OK &&
					parts[0] != parts[1] {
					t.Errorf("one part is of memory %d, the other of %d", parts[0][0], parts[1][0])
					return
				}
			}
		})
	}
	for i := range changes {
		m := Memory{Bytes: memories[i&1], Addr: standAddr}
		if err := k.Reregister(r, ChangeTranslation, m, nil, 0); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	wg.Wait()
}
