package mem

import (
	"bytes"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestRecentIsTheSame: whatever is done to keys, an access by way of a Recent ends like one by
// the keys.
func TestRecentIsTheSame(t *testing.T) {
	const access = LocalWrite | RemoteWrite | MWBind | Invalidatable
	rapid.Check(t, func(t *rapid.T) {
		k, d, recent := newKeys(1), new(Domain), new(Recent)
		by := []Accessor{
			d.Local(),
			{Domain: d, Party: new(Party)},
			{Domain: d, Party: new(Party)},
			{Domain: new(Domain)},
		}
		var regions []*Region
		var windows []*Window
		var names []uint32
		for range 100 {
			one := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "which") }
			switch op := rapid.IntRange(0, 9).Draw(t, "op"); {
			case op == 0 && len(regions) < 12:
				r, err := k.RegisterAt(d, make([]byte, 64), uint64(64*one(3)), access)
				if err != nil {
					t.Fatal(err)
				}
				regions, names = append(regions, r), append(names, r.LKey())
			case op == 1 && len(windows) < 4:
				w, err := k.AllocWindow(d, WindowType2)
				if err != nil {
					t.Fatal(err)
				}
				windows, names = append(windows, w), append(names, w.RKey())
			case op == 2 && len(regions) > 0:
				_ = k.Deregister(regions[one(len(regions))])
			case op == 3 && len(regions) > 0:
				_ = k.Validate(regions[one(len(regions))], uint8(one(2)))
			case op == 4 && len(windows) > 0 && len(regions) > 0:
				w, r := windows[one(len(windows))], regions[one(len(regions))]
				next := NextKey(w.RKey())
				k.Bind(by[1+one(2)], Bind{
					Window: w.RKey(), NewKey: next, LKey: r.LKey(), Addr: r.Addr(), Length: 32,
					Access: RemoteWrite,
				})
				names = append(names, next)
			case op == 5 && len(names) > 0:
				k.Invalidate(by[one(3)], names[one(len(names))])
			case op == 6 && len(windows) > 0:
				_ = k.DeallocWindow(windows[one(len(windows))])
			case len(names) > 0:
				a := by[one(len(by))]
				a.Since = Epoch(one(4)) * k.Epoch() / 3
				key, need := names[one(len(names))], []Access{0, LocalWrite, RemoteWrite}[one(3)]
				addr, n := uint64(16*one(12)), 16*one(4)
				for range 2 {
					want := k.Check(a, key, addr, n, need)
					if got := recent.Check(k, a, key, addr, n, need); got != want {
						t.Fatalf("key %#x: %v, want %v", key, got, want)
					}
				}
			}
		}
	})
}

// TestRecentAsksAgain: what was granted once says nothing of other rights, another queue pair, or
// a message that began before the key was changed.
func TestRecentAsksAgain(t *testing.T) {
	k, d, recent := newKeys(1), new(Domain), new(Recent)
	r, err := k.Register(d, make([]byte, 8), LocalWrite|MWBind)
	if err != nil {
		t.Fatal(err)
	}
	w, err := k.AllocWindow(d, WindowType2)
	if err != nil {
		t.Fatal(err)
	}
	before := k.Epoch()
	owner := Accessor{Domain: d, Party: new(Party)}
	next := NextKey(w.RKey())
	if f := k.Bind(owner, Bind{
		Window: w.RKey(), NewKey: next, LKey: r.LKey(), Addr: r.Addr(), Length: 8,
		Access: RemoteWrite,
	}); f != OK {
		t.Fatal(f)
	}
	for _, a := range []struct {
		by   Accessor
		key  uint32
		need Access
		want Fault
	}{
		{d.Local(), r.LKey(), LocalWrite, OK},
		{d.Local(), r.LKey(), RemoteWrite, FaultRights},
		{owner, next, RemoteWrite, OK},
		{Accessor{Domain: d, Party: new(Party)}, next, RemoteWrite, FaultParty},
		{owner, next, RemoteWrite, OK},
		{Accessor{Domain: d, Party: owner.Party, Since: before}, next, RemoteWrite, FaultChanged},
		{Accessor{Domain: d, Party: owner.Party, Since: k.Epoch()}, next, RemoteWrite, OK},
	} {
		for range 2 {
			if f := recent.Check(k, a.by, a.key, r.Addr(), 8, a.need); f != a.want {
				t.Errorf("%+v: %v", a, f)
			}
		}
	}
}

// TestRecentMoves data, and forgets it.
func TestRecentMoves(t *testing.T) {
	k, d, recent := newKeys(1), new(Domain), new(Recent)
	r, err := k.Register(d, make([]byte, 8), LocalWrite)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]byte, 4)
	for range 2 {
		f := recent.Store(k, d.Local(), r.LKey(), r.Addr()+2, []byte("data"), LocalWrite)
		if g := recent.Load(k, d.Local(), r.LKey(), r.Addr()+2, out, 0); f != OK || g != OK {
			t.Fatal(f, g)
		}
	}
	if string(out) != "data" || !bytes.Equal(r.Bytes(), []byte("\x00\x00data\x00\x00")) {
		t.Errorf("%q and %q", out, r.Bytes())
	}
	for _, n := range []int{0, 9} {
		want := k.Load(d.Local(), r.LKey(), r.Addr()+8, make([]byte, n), 0)
		if f := recent.Load(k, d.Local(), r.LKey(), r.Addr()+8, make([]byte, n), 0); f != want {
			t.Errorf("%d bytes at the end: %v, want %v", n, f, want)
		}
	}
	if n := testing.AllocsPerRun(10, func() {
		recent.Forget()
		recent.Store(k, d.Local(), r.LKey(), r.Addr(), out, LocalWrite)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	recent.Forget()
	for i := range recent.list {
		if recent.list[i] != (recentKey{}) {
			t.Errorf("%+v is remembered", recent.list[i])
		}
	}
}

// TestRecentBesideChanges: no access by way of a Recent succeeds that began behind the end of the
// region, while other keys come and go.
func TestRecentBesideChanges(t *testing.T) {
	k, d := newKeys(1), new(Domain)
	stop := make(chan struct{})
	var key atomic.Uint32
	var gone atomic.Uint32 // the key that was deregistered last
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			recent := new(Recent)
			for {
				select {
				case <-stop:
					return
				default:
				}
				old := gone.Load()
				recent.Check(k, d.Local(), key.Load(), 0x1000, 8, LocalWrite)
				if f := recent.Check(k, d.Local(), old, 0x1000, 8, LocalWrite); f != FaultNoKey {
					t.Errorf("key %#x, which is gone: %v", old, f)
					return
				}
			}
		})
	}
	for range 20_000 {
		r, err := k.RegisterAt(d, make([]byte, 8), 0x1000, LocalWrite)
		if err != nil {
			t.Fatal(err)
		}
		key.Store(r.LKey())
		if err := k.Deregister(r); err != nil {
			t.Fatal(err)
		}
		gone.Store(r.LKey())
	}
	close(stop)
	wg.Wait()
}
