package engine_test

import (
	"bytes"
	"errors"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// windowRights are what the regions of these tests have: peers get nothing but what
// windows give them.
const windowRights = mem.LocalWrite | mem.MWBind

// A lender has a region to which it binds windows for its peers.
type lender struct {
	*seat
	region *engine.MR
}

// lend makes two connected seats, of which b lends windows to a.
func lend(t *testing.T, w *world, init engine.QPInit) (a *seat, b *lender) {
	t.Helper()
	a = seatOn(t, w.devs[0], init)
	b = &lender{seat: seatOn(t, w.devs[1], init)}
	join(t, a, b.seat, engine.ConnectOptions{})
	var err error
	if b.region, err = b.dev.RegMR(b.pd, make([]byte, 1<<16), windowRights); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// window makes one.
func (b *lender) window(t *testing.T, typ mem.WindowType) *engine.MW {
	t.Helper()
	mw, err := b.pd.AllocMW(typ)
	if err != nil {
		t.Fatal(err)
	}
	return mw
}

// bindWR is a bind of a window of type 2 to part of the region.
func (b *lender) bindWR(mw *engine.MW, off, n int, access mem.Access) roce.SendWR {
	return roce.SendWR{
		WRID: 77, Opcode: roce.OpBindMW, Flags: roce.SendSignaled, Bind: mem.Bind{
			Window: mw.RKey(), NewKey: mem.NextKey(mw.RKey()), LKey: b.region.LKey(),
			Addr: b.region.Addr() + uint64(off), Length: uint64(n), Access: access,
		},
	}
}

// bound makes a window of type 2 that is bound by b's queue pair.
func (b *lender) bound(t *testing.T, w *world, off, n int, access mem.Access) *engine.MW {
	t.Helper()
	mw := b.window(t, mem.WindowType2)
	b.send(t, b.bindWR(mw, off, n, access))
	if wc := w.succeed(b.cq, 1)[0]; wc.Opcode != roce.WCBindMW || wc.WRID != 77 {
		t.Fatalf("%+v", wc)
	}
	return mw
}

// through is a request for n bytes of a window, off bytes behind its beginning.
func through(a *seat, op roce.Opcode, key uint32, addr uint64, n int) roce.SendWR {
	return roce.SendWR{
		Opcode: op, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, n)},
		RemoteAddr: addr, RKey: key, CompareAdd: 5,
	}
}

// refusedAccess posts a request that must end with REM_ACCESS_ERR, and connects the
// queue pairs anew.
func refusedAccess(t *testing.T, w *world, a, b *seat, wr roce.SendWR) {
	t.Helper()
	a.send(t, wr)
	if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr {
		t.Errorf("%s: %s, want %s", wr.Opcode, wc.Status, roce.StatusRemAccessErr)
	}
	if a.qp.State() != roce.StateErr || b.qp.State() != roce.StateErr {
		t.Errorf("QPs in %s and %s", a.qp.State(), b.qp.State())
	}
	rejoin(t, a, b)
}

// rejoin connects two seats again.
func rejoin(t *testing.T, a, b *seat) {
	t.Helper()
	for _, s := range []*seat{a, b} {
		if err := s.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState); err != nil {
			t.Fatal(err)
		}
	}
	join(t, a, b, engine.ConnectOptions{})
}

// fill gives memory a pattern.
func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i*7) + seed
	}
}

// TestMWTypeOfDevice: a device has 2B, or 2A when it was opened so, and says
// which.
func TestMWTypeOfDevice(t *testing.T) {
	for _, twoA := range []bool{false, true} {
		w := simWorld(t, 2, sim.Faults{}, engine.Options{Windows2A: twoA})
		if w.devs[1].Windows2A() != twoA {
			t.Errorf("opened with %t, says %t", twoA, !twoA)
		}
		a, b := lend(t, w, engine.QPInit{})
		mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
		a.send(t, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
		w.succeed(a.cq, 1)
	}
}

// TestMWUnboundGrantsNothing: a window that is not bound gives its key to nobody,
// counts as a user of its domain, and goes without a trace.
func TestMWUnboundGrantsNothing(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{})
	for _, typ := range []mem.WindowType{mem.WindowType1, mem.WindowType2} {
		mw := b.window(t, typ)
		if mw.Type() != typ || mw.Bound() || mw.Len() != 0 || mw.PD() != b.pd {
			t.Errorf("type %d: %d, %t, %d bytes", typ, mw.Type(), mw.Bound(), mw.Len())
		}
		refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, mw.RKey(), b.region.Addr(), 1))
		mw.Dealloc()
		mw.Dealloc()
	}
	pd := b.dev.AllocPD()
	mw, err := pd.AllocMW(mem.WindowType2)
	if err != nil {
		t.Fatal(err)
	}
	if err := pd.Close(); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("closed under a window: %v", err)
	}
	if _, err := pd.AllocMW(9); !errors.Is(err, mem.ErrWindow) {
		t.Error(err)
	}
	mw.Dealloc()
	if err := pd.Close(); err != nil {
		t.Error(err)
	}
	if _, err := pd.AllocMW(mem.WindowType1); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("of a closed domain: %v", err)
	}
}

// TestMWBindVerbRollsKey: the key rolls with each bind, comes back at once, is dead
// with the next one, and is for every queue pair of the domain.
func TestMWBindVerbRollsKey(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := lend(t, w, engine.QPInit{})
		c, d := seatOn(t, w.devs[0], engine.QPInit{}), seatIn(t, b.pd, b.dev, engine.QPInit{})
		join(t, c, d, engine.ConnectOptions{})
		fill(a.mr.Bytes(), 1)
		fill(c.mr.Bytes(), 99)
		mw := b.window(t, mem.WindowType1)
		was := mw.RKey()
		to := engine.MWBind{
			WRID: 3, Flags: roce.SendSignaled, MR: b.region, Addr: b.region.Addr() + 100,
			Length: 200, Access: mem.RemoteWrite | mem.RemoteRead,
		}
		key, err := mw.Bind(b.qp, to)
		if err != nil || key != mem.NextKey(was) || mw.RKey() != key {
			t.Fatalf("%v: key %#x, RKey %#x, was %#x", err, key, mw.RKey(), was)
		}
		if wc := w.succeed(b.cq, 1)[0]; wc.Opcode != roce.WCBindMW || wc.WRID != 3 {
			t.Errorf("%+v", wc)
		}
		for _, from := range []*seat{a, c} {
			from.send(t, through(from, roce.OpWrite, key, b.region.Addr()+100, 200))
			w.succeed(from.cq, 1)
			if !bytes.Equal(b.region.Bytes()[100:300], from.mr.Bytes()[:200]) {
				t.Error("the data differs")
			}
		}
		// Bound again while it is bound, by two binds in a row.
		to.Addr, to.WRID = b.region.Addr()+1000, 4
		if _, err = mw.Bind(b.qp, to); err != nil {
			t.Fatal(err)
		}
		to.Addr, to.WRID = b.region.Addr()+2000, 5
		last, err := mw.Bind(b.qp, to)
		if err != nil || last != mem.NextKey(mem.NextKey(key)) {
			t.Fatalf("%v: %#x", err, last)
		}
		w.succeed(b.cq, 2)
		refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, key, b.region.Addr()+100, 200))
		a.send(t, through(a, roce.OpWrite, last, b.region.Addr()+2000, 200))
		w.succeed(a.cq, 1)
		// To unbind is to bind to nothing.
		none, err := mw.Bind(b.qp, engine.MWBind{Flags: roce.SendSignaled})
		if err != nil {
			t.Fatal(err)
		}
		w.succeed(b.cq, 1)
		if mw.Bound() {
			t.Error("still bound")
		}
		for _, key := range []uint32{last, none} {
			refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, key, b.region.Addr()+2000, 1))
		}
		if err := b.region.Deregister(); err != nil {
			t.Error(err)
		}
	})
}

// TestMWBindVerbRefusesAtOnce: what a bind of type 1 refuses before anything is
// posted.
func TestMWBindVerbRefusesAtOnce(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{})
	other := seatOn(t, b.dev, engine.QPInit{}) // of another domain
	foreign, err := b.dev.RegMR(other.pd, make([]byte, 64), windowRights)
	if err != nil {
		t.Fatal(err)
	}
	ud := seatIn(t, b.pd, b.dev, engine.QPInit{Type: roce.TypeUD})
	good := engine.MWBind{
		MR: b.region, Addr: b.region.Addr(), Length: 64, Access: mem.RemoteRead,
	}
	for _, tt := range []struct {
		name   string
		typ    mem.WindowType
		qp     *engine.QP
		change func(*engine.MWBind)
		want   error
	}{
		{"type 2", mem.WindowType2, b.qp, func(*engine.MWBind) {}, roce.ErrInvalid},
		{
			"another domain's QP", mem.WindowType1, other.qp, func(*engine.MWBind) {},
			engine.ErrPermission,
		},
		{
			"another device's QP", mem.WindowType1, a.qp, func(*engine.MWBind) {},
			engine.ErrPermission,
		},
		{"another domain's region", mem.WindowType1, b.qp, func(m *engine.MWBind) {
			m.MR = foreign
		}, engine.ErrPermission},
		{"zero based", mem.WindowType1, b.qp, func(m *engine.MWBind) {
			m.Access |= mem.ZeroBased
		}, roce.ErrInvalid},
		{"a length of no region", mem.WindowType1, b.qp, func(m *engine.MWBind) {
			m.MR, m.Addr = nil, 0
		}, roce.ErrInvalid},
		{"an address of no region", mem.WindowType1, b.qp, func(m *engine.MWBind) {
			m.MR, m.Length = nil, 0
		}, roce.ErrInvalid},
		{"a datagram QP", mem.WindowType1, ud.qp, func(*engine.MWBind) {}, roce.ErrInvalid},
		{"unknown flags", mem.WindowType1, b.qp, func(m *engine.MWBind) {
			m.Flags = 1 << 7
		}, roce.ErrInvalid},
	} {
		mw := b.window(t, tt.typ)
		key, bind := mw.RKey(), good
		tt.change(&bind)
		if got, err := mw.Bind(tt.qp, bind); !errors.Is(err, tt.want) || got != 0 {
			t.Errorf("%s: %v", tt.name, err)
		}
		if mw.RKey() != key {
			t.Errorf("%s: the key rolled", tt.name)
		}
		mw.Dealloc()
	}
	if n := b.qp.Snapshot().SendPosted; n != 0 {
		t.Errorf("%d work requests are posted", n)
	}
}

// TestMWFailedBindKeepsKeyBefore: the key that was returned for a bind that failed
// is no good, the one before it is.
func TestMWFailedBindKeepsKeyBefore(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{})
	mw := b.window(t, mem.WindowType1)
	to := engine.MWBind{
		Flags: roce.SendSignaled, MR: b.region, Addr: b.region.Addr(), Length: 64,
		Access: mem.RemoteRead,
	}
	good, err := mw.Bind(b.qp, to)
	if err != nil {
		t.Fatal(err)
	}
	w.succeed(b.cq, 1)
	to.Length = 1 << 20 // more than there is
	bad, err := mw.Bind(b.qp, to)
	if err != nil {
		t.Fatal(err)
	}
	flushed, err := mw.Bind(b.qp, to)
	if err != nil || flushed != mem.NextKey(bad) {
		t.Fatal(err, flushed)
	}
	wcs := w.take(b.cq, 2)
	if wcs[0].Status != roce.StatusMWBindErr || wcs[1].Status != roce.StatusWRFlushErr ||
		b.qp.State() != roce.StateErr {
		t.Errorf("%s, %s, %s", wcs[0].Status, wcs[1].Status, b.qp.State())
	}
	if mw.RKey() != flushed {
		t.Errorf("key %#x, want %#x", mw.RKey(), flushed)
	}
	if mw.Restore(); mw.RKey() != good || !mw.Bound() {
		t.Errorf("key %#x, want %#x, bound %t", mw.RKey(), good, mw.Bound())
	}
	rejoin(t, a, b.seat)
	a.send(t, through(a, roce.OpRead, good, b.region.Addr(), 64))
	w.succeed(a.cq, 1)
	refusedAccess(t, w, a, b.seat, through(a, roce.OpRead, bad, b.region.Addr(), 64))
	to.Length = 32
	if next, err := mw.Bind(b.qp, to); err != nil || next != bad {
		t.Errorf("%v: %#x, want %#x", err, next, bad)
	}
	w.succeed(b.cq, 1)
}

// TestMWType2PeerStaysInside: a peer writes, reads and counts through a window, and
// cannot reach a byte beside it.
func TestMWType2PeerStaysInside(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := lend(t, w, engine.QPInit{})
		const off, n = 4096, 20_000
		all := mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic
		mw := b.bound(t, w, off, n, all)
		if mw.Addr() != b.region.Addr()+off || mw.Len() != n || !mw.Bound() {
			t.Fatalf("%d bytes at %#x", mw.Len(), mw.Addr())
		}
		shadow := make([]byte, len(b.region.Bytes()))
		fill(a.mr.Bytes()[:n], 3)
		copy(shadow[off:], a.mr.Bytes()[:n])
		a.send(t, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), n))
		w.succeed(a.cq, 1)
		clear(a.mr.Bytes()[:n])
		a.send(t, through(a, roce.OpRead, mw.RKey(), mw.Addr(), n))
		w.succeed(a.cq, 1)
		if !bytes.Equal(a.mr.Bytes()[:n], shadow[off:off+n]) {
			t.Error("read back something else")
		}
		clear(b.region.Bytes()[off : off+8])
		clear(shadow[off : off+8])
		a.send(t, through(a, roce.OpFetchAdd, mw.RKey(), mw.Addr(), 8))
		w.succeed(a.cq, 1)
		if b.region.Bytes()[off] != 5 && b.region.Bytes()[off+7] != 5 {
			t.Error("not counted")
		}
		copy(shadow[off:off+8], b.region.Bytes()[off:])
		for _, at := range []int{-1, n - 9, n, -off} {
			addr := mw.Addr() + uint64(at)
			refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, mw.RKey(), addr, 10))
			refusedAccess(t, w, a, b.seat, through(a, roce.OpRead, mw.RKey(), addr, 10))
		}
		if !bytes.Equal(b.region.Bytes(), shadow) {
			t.Error("memory outside the window changed, or inside by a refused request")
		}
	})
}

// TestMWRefusedBindEndsQP: a bind that is refused ends the queue pair, and the
// window stays free for another.
func TestMWRefusedBindEndsQP(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{})
	mw := b.window(t, mem.WindowType2)
	b.send(t, b.bindWR(mw, 1<<16-1, 2, mem.RemoteRead))
	b.send(t, roce.SendWR{Opcode: roce.OpSend})
	wcs := w.take(b.cq, 2)
	if wcs[0].Status != roce.StatusMWBindErr || wcs[1].Status != roce.StatusWRFlushErr {
		t.Errorf("%s, %s", wcs[0].Status, wcs[1].Status)
	}
	if mw.Bound() {
		t.Error("bound all the same")
	}
	rejoin(t, a, b.seat)
	b.send(t, b.bindWR(mw, 1<<16-2, 2, mem.RemoteRead))
	w.succeed(b.cq, 1)
	a.send(t, through(a, roce.OpRead, mw.RKey(), mw.Addr(), 2))
	w.succeed(a.cq, 1)
}

// TestUnreliableWindows binds and frees windows on UC, which refuses in silence.
func TestUnreliableWindows(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{Type: roce.TypeUC})
	mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
	fill(a.mr.Bytes()[:64], 1)
	a.send(t, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	w.succeed(a.cq, 1)
	w.idle()
	if !bytes.Equal(b.region.Bytes()[:64], a.mr.Bytes()[:64]) {
		t.Error("it did not come")
	}
	addr := mw.Addr()
	b.send(t, roce.SendWR{
		Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: mw.RKey(),
	})
	w.succeed(b.cq, 1)
	before := bytes.Clone(b.region.Bytes())
	clear(a.mr.Bytes()[:64])
	a.send(t, through(a, roce.OpWrite, mw.RKey(), addr, 64))
	w.succeed(a.cq, 1)
	w.idle()
	if !bytes.Equal(b.region.Bytes(), before) || b.qp.State() != roce.StateRTS {
		t.Errorf("memory changed, or the QP is in %s", b.qp.State())
	}
}
