package engine_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// pairOn is two connected seats that take every request.
func pairOn(t *testing.T, w *world) (a, b *seat) {
	t.Helper()
	a, b = seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	must(t, b.qp.Modify(&roce.Attr{Access: rights | mem.FlushPersistent}, roce.AttrAccess))
	return a, b
}

// TestReregIOVA: a new translation gets the address that the caller chooses, and keeps it
// until the next.
func TestReregIOVA(t *testing.T) {
	const at = 0x1234_5678_9abc
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := pairOn(t, w)
		mr, err := b.dev.RegMR(b.pd, make([]byte, 64), rights)
		must(t, err)
		before, memory := mr.Addr(), make([]byte, 64)
		must(t, mr.ReregWith(mem.ChangeTranslation, memory, nil, engine.MROptions{IOVA: at}))
		if mr.Addr() != at || mr.Len() != 64 || mr.Access() != rights {
			t.Errorf("%d bytes at %#x, %s", mr.Len(), mr.Addr(), mr.Access())
		}
		write := func(addr uint64) roce.SendWR {
			return through(a, roce.OpWrite, mr.RKey(), addr, 8)
		}
		copy(a.mr.Bytes(), "by iova.")
		a.send(t, write(at+56))
		w.succeed(a.cq, 1)
		if string(memory[56:]) != "by iova." {
			t.Errorf("memory has %q", memory[56:])
		}
		refusedAccess(t, w, a, b, write(before))
		refusedAccess(t, w, a, b, write(at-1))
		refusedAccess(t, w, a, b, write(at+57))
		// What is not named keeps it, whatever the options say.
		less := rights &^ mem.RemoteRead
		must(t, mr.ReregWith(mem.ChangeAccess, nil, nil, engine.MROptions{
			Access: less, IOVA: 77, Sync: func(_, _ int) error { return nil }, Guarded: true,
		}))
		if mr.Addr() != at || mr.Access() != less {
			t.Errorf("at %#x, %s", mr.Addr(), mr.Access())
		}
		must(t, mr.Rereg(mem.ChangeTranslation, memory, nil, 0))
		if mr.Addr() == at {
			t.Error("the next translation has the address of the one before")
		}
	})
}

// TestReregOptionsRefused: what options cannot be leaves the region as it was.
func TestReregOptionsRefused(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	s := seatOn(t, w.devs[0], engine.QPInit{})
	mr, addr, memory := s.mr, s.mr.Addr(), make([]byte, 64)
	for name, tt := range map[string]struct {
		what mem.Change
		o    engine.MROptions
		want error
	}{
		"wraps": {mem.ChangeTranslation, engine.MROptions{IOVA: math.MaxUint64 - 62}, mem.ErrRange},
		"zero based": {
			relaid,
			engine.MROptions{IOVA: 8, Access: mem.LocalWrite | mem.ZeroBased},
			mem.ErrAccess,
		},
		"no sync": {relaid, engine.MROptions{Access: mem.FlushPersistent}, mem.ErrAccess},
		"sync of what is not named": {mem.ChangeAccess, engine.MROptions{
			Access: mem.FlushPersistent, Sync: func(_, _ int) error { return nil },
		}, mem.ErrAccess},
	} {
		if err := mr.ReregWith(tt.what, memory, nil, tt.o); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		if mr.Addr() != addr || mr.Access() != rights || len(mr.Bytes()) == len(memory) {
			t.Errorf("%s: changed", name)
		}
	}
}

// TestReregSync: new memory may be made persistent by a Sync of its own, which hears what
// is flushed and may refuse it.
func TestReregSync(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := pairOn(t, w)
	mr, err := b.dev.RegMR(b.pd, make([]byte, 64), rights)
	must(t, err)
	var calls [][2]int
	fail := error(nil)
	must(t, mr.ReregWith(relaid, make([]byte, 64), nil, engine.MROptions{
		Access: rights | mem.FlushPersistent, IOVA: 0x1000,
		Sync: func(off, n int) error { calls = append(calls, [2]int{off, n}); return fail },
	}))
	flush := roce.SendWR{
		Opcode: roce.OpFlush, Flags: roce.SendSignaled, RemoteAddr: 0x1010, RKey: mr.RKey(),
		Flush: wire.FlushPersistent, FlushLength: 24,
	}
	a.send(t, flush)
	w.succeed(a.cq, 1)
	// A change of rights alone leaves it.
	must(t, mr.Rereg(mem.ChangeAccess, nil, nil, mem.LocalWrite|mem.FlushPersistent))
	a.send(t, flush)
	w.succeed(a.cq, 1)
	if want := [][2]int{{16, 24}, {16, 24}}; !slices.Equal(calls, want) {
		t.Errorf("synced %v, want %v", calls, want)
	}
	fail = errors.New("no")
	w.refused(a, flush, roce.StatusRemOpErr)
}

// TestReregGuarded: a region gets the mapping of a file that is cut off afterwards.
func TestReregGuarded(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := pairOn(t, w)
	mr, err := b.dev.RegMR(b.pd, make([]byte, 64), rights)
	must(t, err)
	f := odpFile(t, 2)
	memory := odpMap(t, 2, f)
	must(t, mr.ReregWith(mem.ChangeTranslation, memory, nil, engine.MROptions{Guarded: true}))
	wr := through(a, roce.OpWrite, mr.RKey(), mr.Addr()+uint64(odpPage), 8)
	a.send(t, wr)
	w.succeed(a.cq, 1)
	must(t, f.Truncate(int64(odpPage)))
	refusedAccess(t, w, a, b, wr)
	// A new region of it is no worse off.
	again, err := b.dev.RegMRWith(b.pd, memory, engine.MROptions{Access: rights, Guarded: true})
	must(t, err)
	lost := again.Addr() + uint64(odpPage)
	refusedAccess(t, w, a, b, through(a, roce.OpRead, again.RKey(), lost, 8))
}

// TestReregAlloc: a region of any sort gets memory that the device allocates: on a page,
// zero, as long as asked. What the region had mapped before is unmapped, and what it gets
// is with Deregister.
func TestReregAlloc(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		for name, reg := range map[string]func(b *seat) (*engine.MR, error){
			"slice": func(b *seat) (*engine.MR, error) {
				return b.dev.RegMR(b.pd, make([]byte, 64), rights)
			},
			"allocated": func(b *seat) (*engine.MR, error) {
				return b.dev.AllocMR(b.pd, 64, rights)
			},
			"file": func(b *seat) (*engine.MR, error) {
				f := odpFile(t, 1)
				_, err := f.WriteAt(mark, 0)
				must(t, err)
				return b.dev.RegFile(b.pd, f, 0, odpPage, mem.RemoteRead)
			},
		} {
			a, b := pairOn(t, w)
			mr, err := reg(b)
			must(t, err)
			key, first := mr.RKey(), mr.Addr()
			if name != "file" {
				copy(mr.Bytes(), mark)
			}
			if !marked(t, first) {
				t.Fatalf("%s: not marked", name)
			}
			for _, n := range []int{1, odpPage + 1, 5 << 20} {
				must(t, mr.ReregAlloc(relaid, n, nil, rights))
				if mr.RKey() != key || len(mr.Bytes()) != n || cap(mr.Bytes()) != n ||
					mr.Addr()%uint64(odpPage) != 0 || slices.Max(mr.Bytes()) != 0 {
					t.Errorf("%s: key %#x, %d bytes at %#x", name, mr.RKey(), mr.Len(), mr.Addr())
				}
				if name != "slice" && marked(t, first) {
					t.Errorf("%s: what it had is still mapped", name)
				}
				a.mr.Bytes()[0] = 7
				a.send(t, through(a, roce.OpWrite, key, mr.Addr()+uint64(n-1), 1))
				w.succeed(a.cq, 1)
				if mr.Bytes()[n-1] != 7 {
					t.Errorf("%s: %d bytes: not written", name, n)
				}
			}
			addr := mr.Addr()
			copy(mr.Bytes(), mark)
			must(t, mr.Deregister())
			if marked(t, addr) {
				t.Errorf("%s: still mapped", name)
			}
			if err := mr.ReregAlloc(relaid, 1, nil, 0); !errors.Is(err, mem.ErrNotRegistered) {
				t.Errorf("%s: after Deregister: %v", name, err)
			}
		}
	})
}

// TestReregAllocRefused leaves a region with what it had.
func TestReregAllocRefused(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	s := seatOn(t, w.devs[0], engine.QPInit{})
	mr, err := s.dev.AllocMR(s.pd, 64, rights|mem.MWBind)
	must(t, err)
	before := mr.Bytes()
	for name, tt := range map[string]struct {
		what   mem.Change
		n      int
		access mem.Access
		want   error
	}{
		"no translation": {mem.ChangeAccess, 64, rights, mem.ErrChange},
		"unknown":        {8 | mem.ChangeTranslation, 64, rights, mem.ErrChange},
		"no bytes":       {relaid, 0, rights, roce.ErrInvalid},
		"too many":       {relaid, 1<<46 + 1, rights, roce.ErrInvalid},
		"on demand":      {relaid, 64, rights | mem.OnDemand, mem.ErrAccess},
		"access":         {relaid, 64, mem.RemoteWrite, mem.ErrAccess},
		"persistent":     {relaid, 64, mem.FlushPersistent, mem.ErrAccess},
		"no domain":      {mem.ChangeTranslation | mem.ChangePD, 64, 0, roce.ErrInvalid},
	} {
		if err := mr.ReregAlloc(tt.what, tt.n, nil, tt.access); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", name, err, tt.want)
		}
		before[0]++ // it is still mapped
		if &mr.Bytes()[0] != &before[0] || mr.Access() != rights|mem.MWBind {
			t.Errorf("%s: changed", name)
		}
	}
}

// TestReregAllocUnderWay gives the memory of a message back in the middle of it. It is
// unmapped at once, so a late packet would end the process.
func TestReregAllocUnderWay(t *testing.T) {
	for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite, roce.OpRead} {
		x := newTransitIn(t, op, func(s *seat) (*engine.MR, error) {
			return s.dev.AllocMR(s.pd, transitSize, rights)
		})
		must(t, x.theirs.ReregAlloc(mem.ChangeTranslation, transitSize, nil, 0))
		want := roce.StatusRemAccessErr
		if op == roce.OpSend {
			want = roce.StatusRemOpErr
		}
		if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != want {
			t.Errorf("%s: %s, want %s", op, wc.Status, want)
		}
		x.w.idle()
		if slices.Max(x.theirs.Bytes()) != 0 {
			t.Errorf("%s: the new memory has a part of the message", op)
		}
	}
}
