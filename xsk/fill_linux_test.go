package xsk_test

import (
	"testing"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// The kernel has few receive frames as long as they suffice; see fillTarget.

// openFew opens one end whose kernel has target of the receive frames, and one that
// sends to it.
func openFew(t *testing.T, target int) (from, to *xsk.Socket) {
	t.Helper()
	ka, kb := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	c := small(kb)
	c.FillTarget = target
	return open(t, ka, small(ka)), open(t, kb, c)
}

// expectFilled wants the kernel to have so many chunks, and the counts to agree.
func expectFilled(t *testing.T, s *xsk.Socket, when string, want int) {
	t.Helper()
	if owners, ok := s.Census(); !ok || owners["fill"] != want || s.FillTarget() != want {
		t.Errorf("%s: chunks %v, target %d, counts right %t; want %d in fill", when, owners,
			s.FillTarget(), ok, want)
	}
}

// TestFewFrames: a reader that keeps up sees the same few frames again and again.
func TestFewFrames(t *testing.T) {
	a, b := openFew(t, 8)
	expectFilled(t, b, "at first", 8)
	places := map[*byte]bool{}
	frames := make([]xsk.RxFrame, 16)
	for i := range uint32(50) {
		for j := range uint32(2) {
			send(t, a, 2*i+j, 100)
		}
		if n := b.Receive(frames); n != 2 {
			t.Fatalf("%d frames came, want 2", n)
		}
		for j := range frames[:2] {
			places[&frames[j].Head[0]] = true
		}
		b.Release(frames[:2])
	}
	expectFilled(t, b, "in the end", 8)
	if len(places) != 8 {
		t.Errorf("frames came to %d places, want 8", len(places))
	}
}

// TestMoreFrames: the kernel gets more frames when many of those it has are waiting,
// before the reader is through with them, and all when it had none left.
func TestMoreFrames(t *testing.T) {
	for _, tt := range []struct{ target, waiting, want int }{
		{4, 2, 4}, {4, 3, 16}, {4, 4, smallRx}, {12, 7, smallRx},
	} {
		a, b := openFew(t, tt.target)
		for i := range uint32(tt.waiting) {
			send(t, a, i, 100)
		}
		frames := make([]xsk.RxFrame, 1)
		n := b.Receive(frames)
		kept := tt.waiting - n
		if n != 1 || b.FillTarget() != tt.want {
			t.Errorf("%d of %d waiting: received %d, target %d, want 1, %d", tt.waiting, tt.target,
				n, b.FillTarget(), tt.want)
		}
		b.Release(frames)
		for kept > 0 {
			n := b.Receive(frames)
			b.Release(frames[:n])
			kept -= n
		}
		expectFilled(t, b, "in the end", tt.want)
	}
}

// TestKeptFrames: for frames that the application keeps the kernel gets others.
func TestKeptFrames(t *testing.T) {
	a, b := openFew(t, 8)
	var kept []xsk.RxFrame
	for i := range uint32(24) {
		send(t, a, i, 100)
		frames := make([]xsk.RxFrame, 1)
		if b.Receive(frames) != 1 {
			t.Fatalf("frame %d was lost", i)
		}
		kept = append(kept, frames...)
	}
	if owners, ok := b.Census(); !ok || owners["app"] != 24 || owners["fill"] < 6 {
		t.Errorf("chunks %v, counts right %t", owners, ok)
	}
	check := expect(t, 0, 100)
	check(0, join(&kept[0]))
	b.Release(kept)
	expectFilled(t, b, "in the end", 8)
}

// TestRaiseFillTarget: a link that is asked for more frames has them, as far as there
// are, and never fewer.
func TestRaiseFillTarget(t *testing.T) {
	_, b := openFew(t, 8)
	for _, tt := range []struct{ ask, want int }{
		{20, 20}, {-1, 20}, {0, 20}, {19, 20}, {1 << 40, smallRx}, {1, smallRx},
	} {
		b.RaiseFillTarget(tt.ask)
		expectFilled(t, b, "after RaiseFillTarget", tt.want)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b.RaiseFillTarget(8)
}

// TestFillZeroCopy: a driver that receives into the frames itself has all.
func TestFillZeroCopy(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{ZeroCopy: true}, xsktest.KernelOptions{})
	c := small(k)
	c.FillTarget = 4
	expectFilled(t, open(t, k, c), "zero-copy", smallRx)
}
