package xsk_test

import (
	"testing"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// What happens to frames, on the in-memory kernel.

// TestOwnership gives frames back in ways that would corrupt others.
func TestOwnership(t *testing.T) {
	received := func(t *testing.T, a, b *xsk.Socket) xsk.RxFrame {
		send(t, a, 0, 100)
		var f [1]xsk.RxFrame
		if b.Receive(f[:]) != 1 {
			t.Fatal("no frame")
		}
		return f[0]
	}
	reserved := func(a *xsk.Socket) xsk.TxFrame {
		var f [1]xsk.TxFrame
		a.Reserve(f[:])
		f[0].Len = 100
		return f[0]
	}
	for name, misuse := range map[string]func(t *testing.T, a, b *xsk.Socket){
		"release twice": func(t *testing.T, a, b *xsk.Socket) {
			f := received(t, a, b)
			b.Release([]xsk.RxFrame{f})
			b.Release([]xsk.RxFrame{f})
		},
		"release a cleared frame": func(_ *testing.T, _, b *xsk.Socket) {
			b.Release(make([]xsk.RxFrame, 1))
		},
		"release after forward": func(t *testing.T, a, b *xsk.Socket) {
			f := received(t, a, b)
			b.Forward([]xsk.RxFrame{f})
			b.Release([]xsk.RxFrame{f})
		},
		"transmit twice": func(_ *testing.T, a, _ *xsk.Socket) {
			f := reserved(a)
			a.Transmit([]xsk.TxFrame{f})
			a.Transmit([]xsk.TxFrame{f})
		},
		"return after transmit": func(_ *testing.T, a, _ *xsk.Socket) {
			f := reserved(a)
			a.Transmit([]xsk.TxFrame{f})
			a.Return([]xsk.TxFrame{f})
		},
		"transmit nothing": func(_ *testing.T, a, _ *xsk.Socket) {
			f := reserved(a)
			f.Len = 0
			a.Transmit([]xsk.TxFrame{f})
		},
		"transmit too much": func(_ *testing.T, a, _ *xsk.Socket) {
			f := reserved(a)
			f.Len = len(f.Data) + 1
			a.Transmit([]xsk.TxFrame{f})
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b, _, _ := fakeWire(t, xsktest.KernelOptions{})
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			misuse(t, a, b)
		})
	}
}

// TestHeldFrameIsNotReused holds a received frame while the fill ring goes
// around many times.
func TestHeldFrameIsNotReused(t *testing.T) {
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{})
	send(t, a, 7, 1000)
	var held [1]xsk.RxFrame
	if b.Receive(held[:]) != 1 {
		t.Fatal("no frame")
	}
	for i := range uint32(200) {
		send(t, a, 100+i, 1200)
		collect(t, b, 1, expect(t, 100+i, 1200))
	}
	expect(t, 7, 1000)(7, join(&held[0]))
	b.Release(held[:])
}

// TestReserveIsExclusive reserves twice without sending.
func TestReserveIsExclusive(t *testing.T) {
	a, _, _, _ := fakeWire(t, xsktest.KernelOptions{})
	f := make([]xsk.TxFrame, 20)
	n := a.Reserve(f[:10])
	n += a.Reserve(f[10:])
	if n != 16 {
		t.Fatalf("reserved %d of 16 frames", n)
	}
	seen := map[*byte]bool{}
	for i := range f[:n] {
		if seen[&f[i].Data[0]] {
			t.Errorf("frame %d was handed out twice", i)
		}
		seen[&f[i].Data[0]] = true
	}
	if a.Reserve(f[n:]) != 0 {
		t.Error("a frame came out of an empty store")
	}
	a.Return(f[:n])
	if n := a.Reserve(f); n != 16 {
		t.Errorf("reserved %d frames after Return, want 16", n)
	}
}

func TestReceiveMultiBuffer(t *testing.T) {
	for _, batch := range []int{1, 2, 64} { // 1 and 2 end batches inside frames
		a, b, _, _ := fakeWire(t, xsktest.KernelOptions{MTU: 4200})
		for _, s := range []*xsk.Socket{a, b} {
			if i := s.Info(); !i.MultiBuffer || i.MaxFrame != 4218 {
				t.Fatalf("info %+v, want multi-buffer and frames of 4218 bytes", i)
			}
		}
		want := []int{4174, 60, 3840, 3841, 4096, 4097, 4218, 100}
		var got int
		check := expect(t, 0, want...)
		frames := make([]xsk.RxFrame, batch)
		for i, n := range want {
			send(t, a, uint32(i), n)
		}
		for got < len(want) {
			n := b.Receive(frames)
			if n == 0 {
				t.Fatalf("batch %d: %d of %d frames came", batch, got, len(want))
			}
			for i := range frames[:n] {
				if two := frames[i].Tail != nil; two != (want[got] > 3840) {
					t.Errorf("frame of %d bytes: has a tail: %t", want[got], two)
				}
				check(uint32(got), join(&frames[i]))
				got++
			}
			b.Release(frames[:n])
		}
	}
}

func TestReceiveOversize(t *testing.T) {
	_, b, _, kb := fakeWire(t, xsktest.KernelOptions{MTU: 4200})
	for i := range 100 { // all chunks go around many times
		long := make([]byte, 3*3840+i)
		kb.Inject(0, long[:2*3840+1+i]) // three pieces
		kb.Inject(0, long)              // three or four
		short := make([]byte, 64)
		writeFrame(short, uint32(i))
		kb.Inject(0, short)
		collect(t, b, 1, expect(t, uint32(i), 64))
	}
	st, err := b.Stats()
	if err != nil {
		t.Fatal(err)
	}
	want := xsk.Stats{RxPackets: 100, RxBytes: 6400, RxOversize: 200}
	if st != want {
		t.Errorf("stats %+v, want %+v", st, want)
	}
	if owners, ok := b.Census(); !ok || owners["fill"] != smallRx {
		t.Errorf("chunks %v, want 32 in fill", owners)
	}
}

// TestKernelFaults feeds entries that no kernel should produce.
func TestKernelFaults(t *testing.T) {
	a, b, _, kb := fakeWire(t, xsktest.KernelOptions{})
	send(t, a, 0, 100)
	kb.Forge(0,
		[]xsk.Desc{{Addr: 33 << 12, Len: 9}, {Addr: 1 << 40, Len: 9}}, // a TX chunk; none
		[]uint64{0, 32 << 12, 1 << 40})                                // not sent; none
	collect(t, b, 1, expect(t, 0, 100))
	var f [16]xsk.TxFrame
	if n := b.Reserve(f[:]); n != 16 {
		t.Errorf("reserved %d frames, want 16", n)
	}
	b.Return(f[:])
	if st, _ := b.Stats(); st.KernelFaults != 5 {
		t.Errorf("%d kernel faults, want 5", st.KernelFaults)
	}
	if _, ok := b.Census(); !ok {
		t.Error("the counts are wrong")
	}
}

func TestForward(t *testing.T) {
	for _, n := range []int{64, 1500, 4174} {
		a, b, _, kb := fakeWire(t, xsktest.KernelOptions{MTU: 4200})
		frames := make([]xsk.RxFrame, 8)
		for i := range uint32(100) { // more than there are chunks
			send(t, a, i, n)
			got := b.Receive(frames)
			if got != 1 || b.Forward(frames[:1]) != 1 {
				t.Fatalf("frame %d: received %d", i, got)
			}
			flush(t, b)
			collect(t, a, 1, expect(t, i, n))
			b.Reserve(nil) // takes completions back
		}
		kb.Settle()
		b.Reserve(nil)
		if owners, ok := b.Census(); !ok || owners["fill"] != smallRx || owners["tx"] != 0 {
			t.Errorf("%d bytes: chunks %v, want 32 in fill and none in tx", n, owners)
		}
	}
}
