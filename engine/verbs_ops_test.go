package engine_test

import (
	"bytes"
	"encoding/binary"
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

// writeTo is a WRITE of n bytes from the front of a's region to that of b.
func writeTo(a, b *seat, op roce.Opcode, n int) roce.SendWR {
	return roce.SendWR{
		Opcode: op, Flags: roce.SendSignaled, Imm: 0xabad1dea,
		SGList: []roce.SGE{a.mr.SGE(0, n)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
	}
}

// transfer moves n bytes from a to b by an operation and compares them. A SEND of
// nothing behind it tells b when a WRITE is over.
func transfer(t *testing.T, w *world, a, b *seat, op roce.Opcode, n int) {
	t.Helper()
	for i := range n {
		a.mr.Bytes()[i] = byte(i*3 + n + int(op))
	}
	clear(b.mr.Bytes())
	notifies := op == roce.OpSend || op == roce.OpSendImm || op == roce.OpWriteImm
	wanted := roce.Completion{Opcode: roce.WCRecv, ByteLen: uint32(n)}
	if op == roce.OpSendImm || op == roce.OpWriteImm {
		wanted.Flags, wanted.Imm = roce.WCWithImm, 0xabad1dea
	}
	if op == roce.OpWriteImm {
		wanted.Opcode = roce.WCRecvRDMAWithImm
	}
	if notifies {
		b.recv(t, 1, 0, n)
	}
	b.recv(t, 2, 0, 0)
	a.send(t, writeTo(a, b, op, n))
	a.send(t, roce.SendWR{Opcode: roce.OpSend, Flags: roce.SendSignaled})
	w.succeed(a.cq, 2)
	if notifies {
		wc := w.succeed(b.cq, 1)[0]
		wanted.WRID, wanted.QPN, wanted.Time = 1, b.qp.QPN(), wc.Time
		if wc != wanted {
			t.Errorf("%s of %d bytes: completion %+v, want %+v", op, n, wc, wanted)
		}
	}
	w.succeed(b.cq, 1)
	if !bytes.Equal(a.mr.Bytes()[:n], b.mr.Bytes()[:n]) {
		t.Errorf("%s of %d bytes: data differs", op, n)
	}
}

// TestUnreliableConnection runs every operation of UC both ways.
func TestUnreliableConnection(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		init := engine.QPInit{Type: roce.TypeUC}
		a, b := seatOn(t, w.devs[0], init), seatOn(t, w.devs[1], init)
		join(t, a, b, engine.ConnectOptions{SGIDIndex: gidIPv6})
		for _, size := range []int{0, 1, 4096, 4097, 100_000} {
			for _, op := range []roce.Opcode{
				roce.OpSend, roce.OpSendImm, roce.OpWrite, roce.OpWriteImm,
			} {
				transfer(t, w, a, b, op, size)
				transfer(t, w, b, a, op, size)
			}
		}
		read := writeTo(a, b, roce.OpRead, 8)
		if err := a.qp.PostSend(&read); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("a READ on UC: %v", err)
		}
	})
}

// TestUnreliableConnectionLoses sends messages over a network that drops: those
// that arrive are whole and in order, and the sender is never held up.
func TestUnreliableConnectionLoses(t *testing.T) {
	const messages, size = 200, 10_000
	w := simWorld(t, 2, sim.Faults{Drop: 0.05, Delay: roce.Microsecond}, engine.Options{})
	init := engine.QPInit{Type: roce.TypeUC, MaxSendWR: messages, MaxRecvWR: messages}
	a, b := seatOn(t, w.devs[0], init), seatOn(t, w.devs[1], init)
	join(t, a, b, engine.ConnectOptions{})
	for i := range messages {
		b.recv(t, uint64(i), 0, size)
		wr := writeTo(a, b, roce.OpSendImm, size)
		wr.Imm = uint32(i)
		a.send(t, wr)
	}
	w.succeed(a.cq, messages)
	w.idle()
	wcs := make([]roce.Completion, messages)
	n, err := b.cq.Poll(wcs)
	if err != nil || n == 0 || n == messages {
		t.Fatalf("%d of %d messages came: %v", n, messages, err)
	}
	for i, wc := range wcs[:n] {
		if wc.Status != roce.StatusSuccess || wc.ByteLen != size || wc.WRID != uint64(i) ||
			(i > 0 && wc.Imm <= wcs[i-1].Imm) {
			t.Fatalf("message %d: %+v", i, wc)
		}
	}
}

// words puts eight-byte words at the front of a region.
func words(s *seat, values ...uint64) {
	for i, v := range values {
		binary.NativeEndian.PutUint64(s.mr.Bytes()[8*i:], v)
	}
}

func word(s *seat, i int) uint64 { return binary.NativeEndian.Uint64(s.mr.Bytes()[8*i:]) }

// TestAtomics runs both atomics and looks at the old and the new value.
func TestAtomics(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		for _, tt := range []struct {
			name             string
			op               roce.Opcode
			compareAdd, swap uint64
			was, is          uint64
			opcode           roce.WCOpcode
		}{
			{"add", roce.OpFetchAdd, 5, 0, 1 << 40, 1<<40 + 5, roce.WCFetchAdd},
			{"add around", roce.OpFetchAdd, 2, 0, 1<<64 - 1, 1, roce.WCFetchAdd},
			{"equal", roce.OpCmpSwap, 7, 9, 7, 9, roce.WCCompSwap},
			{"not equal", roce.OpCmpSwap, 7, 9, 8, 8, roce.WCCompSwap},
		} {
			words(a, 0, 0)
			words(b, 0, tt.was)
			a.send(t, roce.SendWR{
				Opcode: tt.op, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(8, 8)},
				RemoteAddr: b.mr.Addr() + 8, RKey: b.mr.RKey(),
				CompareAdd: tt.compareAdd, Swap: tt.swap,
			})
			wc := w.succeed(a.cq, 1)[0]
			if wc.Opcode != tt.opcode || word(a, 1) != tt.was || word(b, 1) != tt.is {
				t.Errorf("%s: %s, old %#x, new %#x", tt.name, wc.Opcode, word(a, 1), word(b, 1))
			}
		}
	})
}

// TestAtomicWriteAndFlush stores a word at once, behind a WRITE that is flushed.
func TestAtomicWriteAndFlush(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		words(a, 42, 43)
		write := writeTo(a, b, roce.OpWrite, 8)
		a.send(t, write)
		a.send(t, roce.SendWR{
			Opcode: roce.OpFlush, Flags: roce.SendSignaled, RemoteAddr: b.mr.Addr(),
			RKey: b.mr.RKey(), Flush: wire.FlushGlobal, FlushLength: 8,
		})
		a.send(t, roce.SendWR{
			Opcode: roce.OpAtomicWrite, Flags: roce.SendSignaled,
			SGList: []roce.SGE{a.mr.SGE(8, 8)}, RemoteAddr: b.mr.Addr() + 8, RKey: b.mr.RKey(),
		})
		var opcodes []roce.WCOpcode
		for _, wc := range w.succeed(a.cq, 3) {
			opcodes = append(opcodes, wc.Opcode)
		}
		want := []roce.WCOpcode{roce.WCWrite, roce.WCFlush, roce.WCAtomicWrite}
		if !slices.Equal(opcodes, want) {
			t.Errorf("completions %v, want %v", opcodes, want)
		}
		if word(b, 0) != 42 || word(b, 1) != 43 {
			t.Errorf("the peer has %d and %d", word(b, 0), word(b, 1))
		}
	})
}

// TestInvalidate takes keys out of use, from here and from the peer, and brings
// the region back under a new key.
func TestInvalidate(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		short, err := b.dev.RegMR(b.pd, make([]byte, 64), rights|mem.Invalidatable)
		if err != nil {
			t.Fatal(err)
		}
		old := short.RKey()
		// The peer writes, then has the key taken out of use with its message.
		b.recv(t, 1, 0, 10)
		write := writeTo(a, b, roce.OpWrite, 64)
		write.RemoteAddr, write.RKey = short.Addr(), old
		a.send(t, write)
		a.send(t, roce.SendWR{
			Opcode: roce.OpSendInv, Flags: roce.SendSignaled, SGList: []roce.SGE{a.mr.SGE(0, 10)},
			InvalidateKey: old,
		})
		w.succeed(a.cq, 2)
		wc := w.succeed(b.cq, 1)[0]
		if wc.Flags != roce.WCWithInv || wc.InvalidatedKey != old {
			t.Errorf("completion %+v of a key %#x", wc, old)
		}
		if err := short.Validate(uint8(old + 1)); err != nil {
			t.Fatal(err)
		}
		write.RKey = short.RKey()
		a.send(t, write)
		w.succeed(a.cq, 1)
		// The owner does it itself, and then the peer is refused.
		b.send(t, roce.SendWR{
			Opcode: roce.OpLocalInv, Flags: roce.SendSignaled, InvalidateKey: short.RKey(),
		})
		if wc := w.succeed(b.cq, 1)[0]; wc.Opcode != roce.WCLocalInv {
			t.Errorf("completion %+v", wc)
		}
		a.send(t, write)
		if wc := w.take(a.cq, 1)[0]; wc.Status != roce.StatusRemAccessErr {
			t.Errorf("a WRITE with an invalidated key: %s", wc.Status)
		}
	})
}

// TestInline sends data that is gone when PostSend returns.
func TestInline(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		init := engine.QPInit{MaxInline: 256}
		a, b := seatOn(t, w.devs[0], init), seatOn(t, w.devs[1], init)
		join(t, a, b, engine.ConnectOptions{})
		for _, size := range []int{0, 1, 255, 256} {
			data := bytes.Repeat([]byte{byte(size)}, size)
			want := bytes.Clone(data)
			b.recv(t, 1, 0, 256)
			a.send(t, roce.SendWR{
				Opcode: roce.OpSend, Flags: roce.SendSignaled | roce.SendInline, Inline: data,
			})
			clear(data)
			w.succeed(a.cq, 1)
			if wc := w.succeed(b.cq, 1)[0]; int(wc.ByteLen) != size ||
				!bytes.Equal(b.mr.Bytes()[:size], want) {
				t.Errorf("%d bytes inline came as %d: % x", size, wc.ByteLen, b.mr.Bytes()[:size])
			}
		}
		wr := roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline, Inline: make([]byte, 257),
		}
		if err := a.qp.PostSend(&wr); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("257 bytes inline: %v", err)
		}
	})
}

// TestExtensionsAreNegotiated uses what both ends offer, and nothing that a
// foreign peer was not asked for.
func TestExtensionsAreNegotiated(t *testing.T) {
	const both = roce.ExtSelectiveRepeat | roce.ExtReorderWindow
	for _, tt := range []struct{ a, b, want roce.Extensions }{
		{both, both, both},
		{both, roce.ExtSelectiveRepeat, roce.ExtSelectiveRepeat},
		{both, 0, 0},
		{0, both, 0},
	} {
		w := simWorld(t, 2, sim.Faults{Drop: 0.02, Delay: roce.Microsecond}, engine.Options{})
		a := seatOn(t, w.devs[0], engine.QPInit{Extensions: tt.a})
		b := seatOn(t, w.devs[1], engine.QPInit{Extensions: tt.b})
		join(t, a, b, engine.ConnectOptions{})
		for _, s := range []*seat{a, b} {
			if got := s.qp.Query().Extensions; got != tt.want {
				t.Errorf("%s and %s give %s, want %s", tt.a, tt.b, got, tt.want)
			}
		}
		for range 4 {
			transfer(t, w, a, b, roce.OpWrite, 100_000)
			transfer(t, w, b, a, roce.OpSend, 100_000)
		}
		held := counterOf(t, w.devs[0], "held_early") + counterOf(t, w.devs[1], "held_early")
		if (held > 0) != (tt.want != 0) {
			t.Errorf("%s: %d packets were kept behind gaps", tt.want, held)
		}
	}
}

// TestQuery tells what was set.
func TestQuery(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	if got := a.qp.Query(); got.State != roce.StateReset || got.DestQPN != 0 {
		t.Errorf("in RESET: %+v", got)
	}
	join(t, a, b, engine.ConnectOptions{
		PathMTU: wire.MTU512, TClass: 8, FlowLabel: 99, Timeout: 9, RetryCnt: 3, RNRRetry: 2,
		MinRNRTimer: 5, MaxRdAtomic: 4, HopLimit: 3,
	})
	got := a.qp.Query()
	if got.State != roce.StateRTS || got.CurState != roce.StateRTS || got.SQDraining ||
		got.PathMTU != wire.MTU512 || got.DestQPN != b.qp.QPN() || got.Timeout != 9 ||
		got.RetryCnt != 3 || got.RNRRetry != 2 || got.MinRNRTimer != 5 || got.MaxRdAtomic != 4 ||
		got.MaxDestRdAtomic != 4 || got.Access != rights || got.Port != 1 ||
		got.Path.TClass != 8 || got.Path.HopLimit != 3 || got.Path.FlowLabel != 99 ||
		got.Path.Dst != w.devs[1].GIDs()[gidIPv4] {
		t.Errorf("%+v", got)
	}
}

// TestSGEOfImpossibleLength: a length that an SGE has no room for does not become a short
// one: the work is refused.
func TestSGEOfImpossibleLength(t *testing.T) {
	w := simWorld(t, 2, sim.Faults{}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	for _, n := range []int{1<<32 + 8, 1 << 32, -1, math.MinInt + 8} {
		for _, op := range []roce.Opcode{roce.OpSend, roce.OpWrite, roce.OpRead} {
			wr := writeTo(a, b, op, 8)
			wr.SGList = []roce.SGE{a.mr.SGE(0, n)}
			if err := a.qp.PostSend(&wr); !errors.Is(err, roce.ErrInvalid) {
				t.Errorf("a %s of %d bytes: %v", op, n, err)
			}
		}
	}
}
