package engine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
	"xroce/roce/wire"
)

// TestReregSeenByPeer: each of the seven, seen from the peer.
func TestReregSeenByPeer(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		const all = mem.ChangeTranslation | mem.ChangePD | mem.ChangeAccess
		for what := mem.ChangeTranslation; what <= all; what++ {
			other := b.dev.AllocPD()
			before, after := make([]byte, 128), make([]byte, 256)
			mr, err := b.dev.RegMR(b.pd, before, rights)
			if err != nil {
				t.Fatal(err)
			}
			key, addr := mr.RKey(), mr.Addr()
			a.send(t, through(a, roce.OpWrite, key, addr, 128))
			w.succeed(a.cq, 1)
			readOnly := mem.LocalWrite | mem.RemoteRead
			if err := mr.Rereg(what, after, other, readOnly); err != nil {
				t.Fatalf("%03b: %v", what, err)
			}
			moved := what&mem.ChangeTranslation != 0
			if mr.RKey() != key || mr.LKey() != key || (mr.Addr() != addr) != moved ||
				(mr.PD() == other) != (what&mem.ChangePD != 0) ||
				(mr.Access() == readOnly) != (what&mem.ChangeAccess != 0) {
				t.Errorf("%03b: key %#x at %#x, %s", what, mr.RKey(), mr.Addr(), mr.Access())
			}
			then := bytes.Clone(before)
			copy(mr.Bytes(), "here it is")
			if what&mem.ChangePD != 0 {
				refusedAccess(t, w, a, b, through(a, roce.OpRead, key, mr.Addr(), 10))
				if err := other.Close(); !errors.Is(err, engine.ErrBusy) {
					t.Errorf("%03b: the new domain could be closed: %v", what, err)
				}
			} else {
				a.send(t, through(a, roce.OpRead, key, mr.Addr(), 10))
				w.succeed(a.cq, 1)
				if string(a.mr.Bytes()[:10]) != "here it is" {
					t.Errorf("%03b: read %q", what, a.mr.Bytes()[:10])
				}
			}
			if what&(mem.ChangeAccess|mem.ChangePD) == mem.ChangeAccess {
				refusedAccess(t, w, a, b, through(a, roce.OpWrite, key, mr.Addr(), 10))
			}
			if moved && !bytes.Equal(before, then) {
				t.Errorf("%03b: the memory before changed", what)
			}
			if err := errors.Join(mr.Deregister(), other.Close()); err != nil {
				t.Errorf("%03b: %v", what, err)
			}
		}
	})
}

// TestReregErrorsLeaveRegionAsItWas leave the region and its domains as they
// were.
func TestReregErrorsLeaveRegionAsItWas(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	b := seatOn(t, w.devs[1], engine.QPInit{})
	pd, foreign, closed := b.dev.AllocPD(), w.devs[0].AllocPD(), b.dev.AllocPD()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	mr, err := b.dev.RegMR(pd, make([]byte, 64), rights)
	if err != nil {
		t.Fatal(err)
	}
	addr := mr.Addr()
	buf, other := make([]byte, 8), b.dev.AllocPD()
	for _, tt := range []struct {
		name   string
		what   mem.Change
		buf    []byte
		pd     *engine.PD
		access mem.Access
		want   error
	}{
		{"nothing", 0, buf, other, 0, mem.ErrChange},
		{"unknown", 8, buf, other, 0, mem.ErrChange},
		{"no bytes", mem.ChangeTranslation, nil, other, 0, mem.ErrChange},
		{"no domain", mem.ChangePD, buf, nil, 0, roce.ErrInvalid},
		{"a closed domain", mem.ChangePD, buf, closed, 0, roce.ErrInvalid},
		{"another device's domain", mem.ChangePD, buf, foreign, 0, roce.ErrInvalid},
		{"access", mem.ChangeAccess, buf, other, mem.RemoteWrite, mem.ErrAccess},
		{"all, bad access", 7, buf, other, mem.RemoteAtomic, mem.ErrAccess},
	} {
		if err := mr.Rereg(tt.what, tt.buf, tt.pd, tt.access); !errors.Is(err, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, err, tt.want)
		}
		if mr.PD() != pd || mr.Access() != rights || mr.Addr() != addr || len(mr.Bytes()) != 64 {
			t.Errorf("%s: changed", tt.name)
		}
	}
	if err := errors.Join(other.Close(), mr.Deregister(), pd.Close()); err != nil {
		t.Error(err)
	}
	if err := mr.Rereg(mem.ChangeAccess, nil, nil, 0); !errors.Is(err, mem.ErrNotRegistered) {
		t.Errorf("deregistered: %v", err)
	}
}

// A transit is a message so long that it can be met in the middle.
type transit struct {
	w    *world
	a, b *seat
	// The memory at either end, and who sends the data.
	ours, theirs *engine.MR
	source       *seat
}

const transitSize = 4 << 20

// newTransit posts a message of an operation from a, and drives until some of its data
// was sent.
func newTransit(t *testing.T, op roce.Opcode) *transit {
	t.Helper()
	return newTransitIn(t, op, func(s *seat) (*engine.MR, error) {
		return s.dev.RegMR(s.pd, make([]byte, transitSize), rights)
	})
}

// newTransitIn is newTransit with the memory that reg registers at either end.
func newTransitIn(
	t *testing.T, op roce.Opcode, reg func(*seat) (*engine.MR, error),
) *transit {
	t.Helper()
	w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond, Rate: 1e9}, engine.Options{})
	x := &transit{
		w: w, a: seatOn(t, w.devs[0], engine.QPInit{}), b: seatOn(t, w.devs[1], engine.QPInit{}),
	}
	join(t, x.a, x.b, engine.ConnectOptions{})
	for i, end := range []**engine.MR{&x.ours, &x.theirs} {
		s := []*seat{x.a, x.b}[i]
		var err error
		if *end, err = reg(s); err != nil {
			t.Fatal(err)
		}
	}
	x.source = x.a
	data := x.ours
	if op == roce.OpRead {
		x.source, data = x.b, x.theirs
	}
	pattern := data.Bytes()
	for i := range pattern {
		pattern[i] = byte(i>>8) | 1
	}
	if op == roce.OpSend {
		recv := roce.RecvWR{SGList: []roce.SGE{x.theirs.SGE(0, transitSize)}}
		if err := x.b.qp.PostRecv(&recv); err != nil {
			t.Fatal(err)
		}
	}
	before := counterOf(t, x.source.dev, "sent_pkts")
	x.a.send(t, roce.SendWR{
		Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{x.ours.SGE(0, transitSize)},
		RemoteAddr: x.theirs.Addr(), RKey: x.theirs.RKey(),
	})
	sent := uint64(0)
	w.run(func() bool {
		sent = counterOf(t, x.source.dev, "sent_pkts") - before
		return sent >= 100
	})
	if sent >= transitSize/4096 {
		t.Fatal("all of it was sent already")
	}
	return x
}

// TestReregUnderWay changes the memory in the middle of a WRITE and of a READ. They
// end with an error; the memory before is not touched any more, and the new one never.
func TestReregUnderWay(t *testing.T) {
	for _, op := range []roce.Opcode{roce.OpWrite, roce.OpRead} {
		x := newTransit(t, op)
		second := bytes.Repeat([]byte{0xee}, transitSize) // the pattern has odd bytes
		first := x.theirs.Bytes()
		if err := x.theirs.Rereg(mem.ChangeTranslation, second, nil, 0); err != nil {
			t.Fatal(err)
		}
		then := bytes.Clone(first)
		if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr {
			t.Errorf("%s: %s", op, wc.Status)
		}
		x.w.idle()
		if !bytes.Equal(first, then) {
			t.Errorf("%s: the memory before was touched after the change", op)
		}
		if !bytes.Equal(second, bytes.Repeat([]byte{0xee}, transitSize)) {
			t.Errorf("%s: the new memory has a part of the message", op)
		}
		if op == roce.OpRead && bytes.IndexByte(x.ours.Bytes(), 0xee) >= 0 {
			t.Error("the READ brought a part of the new memory")
		}
	}
}

// TestReregFile registers a file, flushes it, lends it, and registers other memory in
// its place.
func TestReregFile(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		persistent := rights | mem.FlushPersistent
		for _, s := range []*seat{a, b} {
			err := s.qp.Modify(&roce.Attr{Access: persistent}, roce.AttrAccess)
			if err != nil {
				t.Fatal(err)
			}
		}
		name := filepath.Join(t.TempDir(), "memory")
		if err := os.WriteFile(name, bytes.Repeat([]byte{'.'}, 20_000), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		mr, err := b.dev.RegFile(b.pd, f, 5000, 10_000, persistent|mem.ZeroBased)
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		if mr.Addr() != 0 || len(mr.Bytes()) != 10_000 {
			t.Errorf("%d bytes at %#x", len(mr.Bytes()), mr.Addr())
		}
		copy(a.mr.Bytes(), "in the file")
		a.send(t, through(a, roce.OpWrite, mr.RKey(), 4000, 11))
		a.send(t, roce.SendWR{
			Opcode: roce.OpFlush, Flags: roce.SendSignaled, RemoteAddr: 4000, RKey: mr.RKey(),
			Flush: wire.FlushPersistent | wire.FlushGlobal, FlushLength: 11,
		})
		a.send(t, roce.SendWR{
			Opcode: roce.OpFlush, Flags: roce.SendSignaled, RKey: mr.RKey(),
			Flush: wire.FlushPersistent, FlushRegion: true,
		})
		// Nothing can be flushed, too, also where a page of the file begins.
		for _, at := range []uint64{0, 8192 - 5000, 10_000} {
			a.send(t, roce.SendWR{
				Opcode: roce.OpFlush, Flags: roce.SendSignaled, RemoteAddr: at, RKey: mr.RKey(),
				Flush: wire.FlushPersistent,
			})
		}
		w.succeed(a.cq, 6)
		refusedAccess(t, w, a, b, through(a, roce.OpWrite, mr.RKey(), 9_995, 6))
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		want := bytes.Repeat([]byte{'.'}, 20_000)
		copy(want[9000:], "in the file")
		if !bytes.Equal(text, want) {
			t.Error("the file has something else")
		}
		// Other memory has no file to be flushed to.
		err = mr.Rereg(mem.ChangeTranslation, make([]byte, 64), nil, 0)
		if !errors.Is(err, mem.ErrAccess) {
			t.Errorf("a slice with FLUSH_PERSISTENT: %v", err)
		}
		err = mr.Rereg(mem.ChangeTranslation|mem.ChangeAccess, make([]byte, 64), nil, rights)
		if err != nil {
			t.Fatal(err)
		}
		a.send(t, through(a, roce.OpWrite, mr.RKey(), mr.Addr(), 11))
		w.succeed(a.cq, 1)
		if string(mr.Bytes()[:11]) != "in the file" {
			t.Errorf("%q", mr.Bytes()[:11])
		}
		if err := mr.Deregister(); err != nil {
			t.Error(err)
		}
	})
}

// TestRegFileRefuses what is not in the file or may not be written.
func TestRegFileRefuses(t *testing.T) {
	w := simWorld(t, 1, sim.Faults{}, engine.Options{})
	dev := w.devs[0]
	pd := dev.AllocPD()
	name := filepath.Join(t.TempDir(), "memory")
	if err := os.WriteFile(name, make([]byte, 100), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name) // for reading
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		off    int64
		n      int
		access mem.Access
		want   error
	}{
		{0, 101, 0, roce.ErrInvalid},
		{50, 51, 0, roce.ErrInvalid},
		{-1, 1, 0, roce.ErrInvalid},
		{0, 0, 0, roce.ErrInvalid},
		{1 << 62, 1 << 62, 0, roce.ErrInvalid},
		{0, 100, mem.RemoteWrite, mem.ErrAccess},
		{0, 100, mem.LocalWrite, os.ErrPermission},
	} {
		if _, err := dev.RegFile(pd, f, tt.off, tt.n, tt.access); !errors.Is(err, tt.want) {
			t.Errorf("%d bytes at %d, %s: %v, want %v", tt.n, tt.off, tt.access, err, tt.want)
		}
	}
	mr, err := dev.RegFile(pd, f, 10, 90, mem.RemoteRead)
	if err != nil {
		t.Fatal(err)
	}
	err = mr.Rereg(mem.ChangeAccess, nil, nil, mem.LocalWrite)
	if !errors.Is(err, mem.ErrAccess) {
		t.Errorf("LOCAL_WRITE on a mapping for reading: %v", err)
	}
	if err := mr.Rereg(mem.ChangeAccess, nil, nil, 0); err != nil {
		t.Error(err)
	}
	// No way round leads to it either: not by part of the mapping, nor over other memory.
	file, both := mr.Bytes(), mem.ChangeTranslation|mem.ChangeAccess
	if err := mr.Rereg(both, file[:50], nil, mem.LocalWrite); !errors.Is(err, mem.ErrAccess) {
		t.Errorf("LOCAL_WRITE on part of a mapping for reading: %v", err)
	}
	must(t, mr.Rereg(both, make([]byte, 8), nil, mem.LocalWrite))
	must(t, mr.Rereg(mem.ChangeAccess, nil, nil, mem.LocalWrite))
	if err := mr.Rereg(mem.ChangeTranslation, file, nil, 0); !errors.Is(err, mem.ErrAccess) {
		t.Errorf("a mapping for reading to a region with LOCAL_WRITE: %v", err)
	}
	must(t, mr.Rereg(both, file[89:], nil, mem.RemoteRead))
	if file[89] != 0 || mr.Bytes()[0] != 0 {
		t.Error("the file has something else")
	}
	if err := errors.Join(mr.Deregister(), f.Close(), pd.Close()); err != nil {
		t.Error(err)
	}
}

// TestDeregisterUnderWay takes memory away in the middle of each operation, on either
// side. Nothing waits, the work ends with an error, and no late packet touches it.
func TestDeregisterUnderWay(t *testing.T) {
	for _, tt := range []struct {
		op     roce.Opcode
		local  bool
		status roce.Status
	}{
		{roce.OpWrite, true, roce.StatusLocProtErr},
		{roce.OpRead, true, roce.StatusLocProtErr},
		{roce.OpSend, true, roce.StatusLocProtErr},
		{roce.OpWrite, false, roce.StatusRemAccessErr},
		{roce.OpRead, false, roce.StatusRemAccessErr},
		{roce.OpSend, false, roce.StatusRemOpErr},
	} {
		x := newTransit(t, tt.op)
		gone := x.theirs
		if tt.local {
			gone = x.ours
		}
		if err := gone.Deregister(); err != nil {
			t.Fatal(err)
		}
		then := bytes.Clone(gone.Bytes())
		if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != tt.status {
			t.Errorf("%s, local %t: %s, want %s", tt.op, tt.local, wc.Status, tt.status)
		}
		x.w.idle()
		if !bytes.Equal(gone.Bytes(), then) {
			t.Errorf("%s, local %t: written to after Deregister", tt.op, tt.local)
		}
	}
}

// TestDeregisterWakes: in direct mode whoever waits for completions holds the progress
// lock in its sleep; Deregister does not wait for the packet that it waits for.
func TestDeregisterWakes(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan error)
	go func() {
		_, err := b.cq.Wait(ctx, make([]roce.Completion, 1))
		over <- err
	}()
	for range 100 {
		mr, err := devB.RegMR(b.pd, make([]byte, 64), 0)
		if err != nil {
			t.Fatal(err)
		}
		if err := mr.Deregister(); err != nil { // the test's time limit finds a hang
			t.Fatal(err)
		}
	}
	cancel()
	if err := <-over; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
