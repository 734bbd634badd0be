package xsk_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// Wait runs beside a goroutine that moves frames: a driver sleeps without the lock under
// which others make progress.

// TestWaitTouchesNoRing: what is in the rings before a Wait is there after it.
func TestWaitTouchesNoRing(t *testing.T) {
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{})
	send(t, b, 0, 64, 64) // to be received
	var rx [2]xsk.RxFrame
	if a.Receive(rx[:1]) != 1 || a.Forward(rx[:1]) != 1 {
		t.Fatal("nothing to forward")
	}
	send(t, a, 0, 64) // with the forwarded one it is in the completion ring
	before, ok := a.Census()
	if !ok || before["tx"] != 2 {
		t.Fatalf("chunks %v, want 2 in tx", before)
	}
	if err := a.Wait(0); err != nil {
		t.Fatal(err)
	}
	after, ok := a.Census()
	for owner, n := range before {
		if !ok || after[owner] != n {
			t.Errorf("%d chunks are in %s after Wait, %d before", after[owner], owner, n)
		}
	}
	a.Reserve(nil)
	if owners, ok := a.Census(); !ok || owners["tx"] != 0 {
		t.Errorf("chunks %v after Reserve, want none in tx", owners)
	}
}

// waitBeside sends from a to b, and has another goroutine wait in each meanwhile.
func waitBeside(t *testing.T, a, b *xsk.Socket, total uint32) {
	t.Helper()
	var over atomic.Bool
	var waiting sync.WaitGroup
	for _, s := range []*xsk.Socket{a, b} {
		waiting.Go(func() {
			for !over.Load() {
				if err := s.Wait(-1); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	defer func() {
		over.Store(true)
		a.Wake()
		b.Wake()
		waiting.Wait()
	}()
	tx, rx := make([]xsk.TxFrame, 8), make([]xsk.RxFrame, 8)
	sent, came := uint32(0), uint32(0)
	waitFor(t, "all frames", func() bool {
		n := a.Reserve(tx[:min(8, total-sent)])
		for i := range tx[:n] {
			writeFrame(tx[i].Data[:64], sent)
			tx[i].Len = 64
			sent++
		}
		a.Transmit(tx[:n])
		flush(t, a)
		n = b.Receive(rx)
		for i := range rx[:n] {
			if number, ok := mine(&rx[i]); ok {
				if number != came {
					t.Fatalf("frame %d came, want %d", number, came)
				}
				came++
			}
		}
		b.Release(rx[:n/2])
		b.Forward(rx[n/2 : n])
		flush(t, b)
		a.Release(rx[:a.Receive(rx)])
		return came == total
	})
}

// TestWaitBeside is for the race detector.
func TestWaitBeside(t *testing.T) {
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{})
	waitBeside(t, a, b, 5000)
}

// TestVethWaitBeside needs no race detector: where two reap, frames come twice or the
// socket panics.
func TestVethWaitBeside(t *testing.T) {
	_, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{})
	waitBeside(t, a, b, 20_000)
}
