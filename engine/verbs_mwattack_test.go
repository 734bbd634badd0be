package engine_test

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/roce/mem"
)

// An attack is a peer that wants what it was not given. Whatever it tries, it loses its
// connection, and memory stays as it is.
type attack struct {
	w      *world
	a      *seat
	b      *lender
	shadow []byte
}

func newAttack(t *testing.T, o engine.Options) *attack {
	t.Helper()
	x := &attack{w: simWorld(t, 2, sim.Faults{}, o)}
	x.a, x.b = lend(t, x.w, engine.QPInit{})
	fill(x.b.region.Bytes(), 1)
	x.shadow = bytes.Clone(x.b.region.Bytes())
	fill(x.a.mr.Bytes(), 200)
	return x
}

// try reaches for n bytes with a key by every one-sided operation, and looks at memory
// on both sides.
func (x *attack) try(t *testing.T, what string, key uint32, addr uint64, n int) {
	t.Helper()
	for _, op := range []roce.Opcode{
		roce.OpWrite, roce.OpRead, roce.OpFetchAdd, roce.OpCmpSwap, roce.OpAtomicWrite,
	} {
		if op != roce.OpWrite && op != roce.OpRead {
			n = 8
		}
		own := bytes.Clone(x.a.mr.Bytes())
		refusedAccess(t, x.w, x.a, x.b.seat, through(x.a, op, key, addr&^7, n))
		if !bytes.Equal(x.b.region.Bytes(), x.shadow) {
			t.Fatalf("%s: %s changed memory", what, op)
		}
		if !bytes.Equal(x.a.mr.Bytes(), own) {
			t.Fatalf("%s: %s brought something", what, op)
		}
	}
}

const windowAll = mem.RemoteWrite | mem.RemoteRead | mem.RemoteAtomic

// TestAttackGuessedKeys: who knows one key knows no other. Neighbours in index and
// variant, the region's key and random ones are all no good.
func TestAttackGuessedKeys(t *testing.T) {
	x := newAttack(t, engine.Options{Rand: rand.NewPCG(1, 2)})
	mw := x.b.bound(t, x.w, 0, 64, windowAll)
	one := x.b.window(t, mem.WindowType1)
	guesses := []uint32{0, 1, 1<<32 - 1, x.b.region.RKey(), x.b.mr.RKey() ^ 1, one.RKey()}
	for bit := range 32 {
		guesses = append(guesses, mw.RKey()^1<<bit)
	}
	for range 20 {
		guesses = append(guesses, rand.Uint32())
	}
	for _, key := range guesses {
		if key == mw.RKey() || key == x.b.mr.RKey() {
			continue
		}
		x.try(t, "a guess", key, mw.Addr(), 8)
	}
	x.a.send(t, through(x.a, roce.OpRead, mw.RKey(), mw.Addr(), 64))
	x.w.succeed(x.a.cq, 1)
}

// TestAttackUseAfterInvalidate: a key is dead after each way to take it away, also
// when the window lives on under another key and when the same bytes are lent again.
func TestAttackUseAfterInvalidate(t *testing.T) {
	x := newAttack(t, engine.Options{})
	mw := x.b.bound(t, x.w, 64, 64, windowAll)
	addr, dead := mw.Addr(), []uint32{mw.RKey()}
	free := func(key uint32) {
		x.b.send(t, roce.SendWR{
			Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: key,
		})
		x.w.succeed(x.b.cq, 1)
	}
	free(mw.RKey())
	x.try(t, "after LOCAL_INV", dead[0], addr, 64)
	x.b.send(t, x.b.bindWR(mw, 64, 64, windowAll))
	x.w.succeed(x.b.cq, 1)
	x.try(t, "after LOCAL_INV and a bind", dead[0], addr, 64)
	// The peer gives it back itself, and goes on all the same.
	dead = append(dead, mw.RKey())
	x.b.recv(t, 1, 0, 0)
	x.a.send(t, roce.SendWR{
		Opcode: roce.OpSendInv, Flags: roce.SendSignaled, InvalidateKey: mw.RKey(),
	})
	x.w.succeed(x.a.cq, 1)
	x.w.succeed(x.b.cq, 1)
	x.try(t, "after SEND_INV", dead[1], addr, 64)
	last := x.b.bound(t, x.w, 64, 64, windowAll)
	dead = append(dead, last.RKey())
	last.Dealloc()
	mw.Dealloc()
	for _, key := range dead {
		x.try(t, "after Dealloc", key, addr, 64)
	}
}

// TestAttackOtherDomain: the keys of another protection domain, of a region and of
// windows of either type, are no good.
func TestAttackOtherDomain(t *testing.T) {
	x := newAttack(t, engine.Options{})
	victim := &lender{seat: seatOn(t, x.w.devs[1], engine.QPInit{})}
	partner := seatOn(t, x.w.devs[0], engine.QPInit{})
	join(t, partner, victim.seat, engine.ConnectOptions{})
	var err error
	victim.region, err = victim.dev.RegMRWith(victim.pd, x.b.region.Bytes(),
		engine.MROptions{Access: rights | mem.MWBind, IOVA: 1 << 32})
	if err != nil {
		t.Fatal(err)
	}
	two := victim.bound(t, x.w, 0, 64, windowAll)
	one := victim.window(t, mem.WindowType1)
	_, err = one.Bind(victim.qp, engine.MWBind{
		Flags: roce.SendSignaled, MR: victim.region, Addr: 1 << 32, Length: 64, Access: windowAll,
	})
	if err != nil {
		t.Fatal(err)
	}
	x.w.succeed(victim.cq, 1)
	for what, key := range map[string]uint32{
		"region": victim.region.RKey(), "type 1": one.RKey(), "type 2": two.RKey(),
	} {
		x.try(t, what, key, 1<<32, 64)
	}
	// Nor may it invalidate them, or bind its own windows there.
	x.b.recv(t, 9, 0, 0)
	x.a.send(t, roce.SendWR{Opcode: roce.OpSendInv, InvalidateKey: two.RKey()})
	if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr || !two.Bound() {
		t.Errorf("SEND_INV: %s, bound %t", wc.Status, two.Bound())
	}
}

// TestAttackOtherQPsWindow: the window of another queue pair of the same domain is no
// good, with 2B and with 2A, and cannot be given back by this one's peer.
func TestAttackOtherQPsWindow(t *testing.T) {
	for _, twoA := range []bool{false, true} {
		x := newAttack(t, engine.Options{Windows2A: twoA})
		partner := seatOn(t, x.w.devs[0], engine.QPInit{})
		owner := *x.b
		owner.seat = seatIn(t, x.b.pd, x.b.dev, engine.QPInit{})
		join(t, partner, owner.seat, engine.ConnectOptions{})
		mw := owner.bound(t, x.w, 0, 64, windowAll)
		x.try(t, "another QP's", mw.RKey(), mw.Addr(), 64)
		x.b.recv(t, 9, 0, 0)
		x.a.send(t, roce.SendWR{Opcode: roce.OpSendInv, InvalidateKey: mw.RKey()})
		if wc := x.w.take(x.a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr || !mw.Bound() {
			t.Errorf("SEND_INV: %s, bound %t", wc.Status, mw.Bound())
		}
		partner.send(t, through(partner, roce.OpRead, mw.RKey(), mw.Addr(), 64))
		x.w.succeed(partner.cq, 1)
	}
}
