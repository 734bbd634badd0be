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

// TestMWLocalInvalidateFreesWindow frees a window and binds it anew, over and
// over.
func TestMWLocalInvalidateFreesWindow(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := lend(t, w, engine.QPInit{})
		mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
		for round := range 3 {
			fill(a.mr.Bytes()[:64], byte(round))
			key, addr := mw.RKey(), mw.Addr()
			a.send(t, through(a, roce.OpWrite, key, addr, 64))
			w.succeed(a.cq, 1)
			b.send(t, roce.SendWR{
				Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: key,
			})
			if wc := w.succeed(b.cq, 1)[0]; wc.Opcode != roce.WCLocalInv || mw.Bound() {
				t.Fatalf("%+v, bound %t", wc, mw.Bound())
			}
			before := bytes.Clone(b.region.Bytes())
			clear(a.mr.Bytes()[:64])
			refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, key, addr, 64))
			if !bytes.Equal(before, b.region.Bytes()) {
				t.Fatal("memory changed")
			}
			b.send(t, b.bindWR(mw, 64*(round+1), 64, mem.RemoteWrite))
			w.succeed(b.cq, 1)
		}
	})
}

// TestMWRemoteInvalidateFreesWindow: the peer gives the window back with its
// message; nobody else's peer can.
func TestMWRemoteInvalidateFreesWindow(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := lend(t, w, engine.QPInit{})
		c, d := seatOn(t, w.devs[0], engine.QPInit{}), seatIn(t, b.pd, b.dev, engine.QPInit{})
		join(t, c, d, engine.ConnectOptions{})
		mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
		give := roce.SendWR{
			Opcode: roce.OpSendInv, Flags: roce.SendSignaled, InvalidateKey: mw.RKey(),
		}
		d.recv(t, 1, 0, 8)
		c.send(t, give)
		if wc := w.take(c.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr || !mw.Bound() {
			t.Errorf("another QP's peer: %s, bound %t", wc.Status, mw.Bound())
		}
		if wc := w.take(d.cq, 1)[0]; wc.Status != roce.StatusLocAccessErr {
			t.Errorf("its receive: %s", wc.Status)
		}
		b.recv(t, 2, 0, 8)
		a.send(t, give)
		w.succeed(a.cq, 1)
		wc := w.succeed(b.cq, 1)[0]
		if wc.Flags != roce.WCWithInv || wc.InvalidatedKey != give.InvalidateKey || mw.Bound() {
			t.Errorf("%+v, bound %t", wc, mw.Bound())
		}
		if err := b.region.Deregister(); err != nil {
			t.Error(err)
		}
	})
}

// TestMWOfClosedQP: a window whose queue pair is gone is of use to nobody, until
// another queue pair of its domain frees it.
func TestMWOfClosedQP(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{})
	mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
	b.qp.Close()
	next := seatIn(t, b.pd, b.dev, engine.QPInit{})
	if err := a.qp.Modify(&roce.Attr{State: roce.StateReset}, roce.AttrState); err != nil {
		t.Fatal(err)
	}
	join(t, a, next, engine.ConnectOptions{})
	refusedAccess(t, w, a, next, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	if err := b.region.Deregister(); !errors.Is(err, mem.ErrBusy) ||
		!errors.Is(err, engine.ErrBusy) {
		t.Errorf("deregistered under the window: %v", err)
	}
	next.send(t, roce.SendWR{
		Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: mw.RKey(),
	})
	w.succeed(next.cq, 1)
	b.qp, b.cq, b.seat.mr = next.qp, next.cq, next.mr
	b.send(t, b.bindWR(mw, 0, 64, mem.RemoteWrite))
	w.succeed(b.cq, 1)
	a.send(t, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	w.succeed(a.cq, 1)
}

// TestMWOutlivesReset: RESET ends a connection and not the windows of a queue pair.
// Whoever is connected next can use them, and nobody else, until the owner takes them
// back.
func TestMWOutlivesReset(t *testing.T) {
	for _, twoA := range []bool{false, true} {
		w := simWorld(t, 2, sim.Faults{}, engine.Options{Windows2A: twoA})
		a, b := lend(t, w, engine.QPInit{})
		mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
		rejoin(t, a, b.seat)
		if !mw.Bound() {
			t.Fatal("RESET took the window away")
		}
		a.send(t, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
		w.succeed(a.cq, 1)
		b.send(t, roce.SendWR{
			Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: mw.RKey(),
		})
		w.succeed(b.cq, 1)
		refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	}
}

// TestMWKeepsRegionBusy: a region with a window stays what and where it is, and is
// free when the window is gone.
func TestMWKeepsRegionBusy(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := lend(t, w, engine.QPInit{})
	mw := b.bound(t, w, 0, 64, mem.RemoteWrite)
	if err := b.region.Deregister(); !errors.Is(err, mem.ErrBusy) {
		t.Errorf("deregistered: %v", err)
	}
	err := b.region.Rereg(mem.ChangeAccess, nil, nil, 0)
	if !errors.Is(err, mem.ErrBusy) || !errors.Is(err, engine.ErrBusy) {
		t.Errorf("re-registered: %v", err)
	}
	a.send(t, through(a, roce.OpWrite, mw.RKey(), mw.Addr(), 64))
	w.succeed(a.cq, 1)
	key, addr := mw.RKey(), mw.Addr()
	mw.Dealloc()
	if err := b.region.Deregister(); err != nil {
		t.Error(err)
	}
	refusedAccess(t, w, a, b.seat, through(a, roce.OpWrite, key, addr, 64))
	if b.pd.Close() == nil {
		t.Error("the domain has a QP and a region, and was closed")
	}
}
