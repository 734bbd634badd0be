package xsk_test

import (
	"testing"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// TestVethRingsAreIndependent: an end whose transmit ring is full, and is not flushed, receives all
// that comes; one whose receive ring is full, and is not read, sends all that it has.
func TestVethRingsAreIndependent(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{NoAddrs: true})
	a := openOn(t, p, xsktest.A, xsk.Config{TxFrames: 64, TxRing: 128, RxFrames: 64, RxRing: 16})
	b := openOn(t, p, xsktest.B, xsk.Config{})
	p.Attach(xsktest.A, a.FD())
	p.Attach(xsktest.B, b.FD())
	full := lengths(64, 64, 1500)
	queue(t, a, 0, full...)
	if n := a.Reserve(make([]xsk.TxFrame, 1)); n != 0 {
		t.Fatalf("%d more frames to transmit from", n)
	}
	for round := range uint32(20) {
		l := lengths(16, 64, 1500)
		send(t, b, 1000+100*round, l...)
		collect(t, a, len(l), expect(t, 1000+100*round, l...))
	}
	// The other way round: nobody reads at a, where more comes than it takes.
	send(t, b, 5000, full...)
	var st xsk.Stats
	waitFor(t, "lost frames", func() bool { st, _ = a.Stats(); return st.RxRingFull == 48 })
	flush(t, a)
	collect(t, b, len(full), expect(t, 0, full...))
	if st, _ = a.Stats(); st.RxRingFull != 48 {
		t.Errorf("%d frames are lost", st.RxRingFull)
	}
}
