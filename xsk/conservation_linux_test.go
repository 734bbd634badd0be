package xsk_test

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// Frames under random operations and on two threads, on the in-memory kernel.

// TestConservation does random operations on both ends of a wire whose kernels
// fail at random, and checks that no chunk is lost or doubled, whether the kernels have
// all receive chunks or few of them.
func TestConservation(t *testing.T) {
	t.Run("all", func(t *testing.T) { conserve(t, 0) })
	t.Run("few", func(t *testing.T) { conserve(t, 5) })
}

func conserve(t *testing.T, target int) {
	operations := 1_000_000
	if raceEnabled || testing.Short() {
		operations = 100_000
	}
	r := rand.New(rand.NewPCG(1, 2))
	hook := func(call string) error {
		if call != "Send" {
			return nil
		}
		return []error{nil, nil, unix.EAGAIN, unix.EBUSY, unix.ENOBUFS, nil}[r.IntN(6)]
	}
	ka, kb := xsktest.NewWire(
		xsktest.KernelOptions{MTU: 4200, Lag: 5, OldTx: true, Hook: hook},
		xsktest.KernelOptions{MTU: 4200, Lag: 3, Hook: hook})
	few := func(k *xsktest.Kernel) xsk.Config {
		c := small(k)
		c.FillTarget = target
		return c
	}
	ends := []*actor{{s: open(t, ka, few(ka))}, {s: open(t, kb, few(kb))}}
	for i := range operations {
		ends[r.IntN(2)].step(r)
		if i%1000 == 0 {
			for _, e := range ends {
				e.check(t)
			}
		}
	}
	for i, k := range []*xsktest.Kernel{ka, kb} {
		ends[i].check(t)
		ends[i].finish(t, k)
	}
}

// actor is one end in TestConservation.
type actor struct {
	s        *xsk.Socket
	received []xsk.RxFrame
	reserved []xsk.TxFrame
}

// step does one random thing.
func (a *actor) step(r *rand.Rand) {
	switch r.IntN(7) {
	case 0:
		f := make([]xsk.RxFrame, 1+r.IntN(8))
		a.received = append(a.received, f[:a.s.Receive(f)]...)
	case 1:
		n := r.IntN(len(a.received) + 1)
		a.s.Release(a.received[:n])
		a.received = a.received[n:]
	case 2:
		n := r.IntN(len(a.received) + 1)
		a.s.Forward(a.received[:n])
		a.received = a.received[n:]
	case 3:
		f := make([]xsk.TxFrame, 1+r.IntN(8))
		a.reserved = append(a.reserved, f[:a.s.Reserve(f)]...)
	case 4:
		n := r.IntN(len(a.reserved) + 1)
		for i := range a.reserved[:n] {
			a.reserved[i].Len = 1 + r.IntN(len(a.reserved[i].Data))
		}
		a.s.Transmit(a.reserved[:n])
		a.reserved = a.reserved[n:]
	case 5:
		n := r.IntN(len(a.reserved) + 1)
		a.s.Return(a.reserved[:n])
		a.reserved = a.reserved[n:]
	case 6:
		_ = a.s.Flush() // fails at random
	}
}

// check compares the socket's counts with what the actor holds.
func (a *actor) check(t *testing.T) {
	t.Helper()
	held := 2 * len(a.reserved)
	for i := range a.received {
		held++
		if a.received[i].Tail != nil {
			held++
		}
	}
	owners, ok := a.s.Census()
	total := 0
	for _, n := range owners {
		total += n
	}
	if !ok || owners["app"] != held || total != a.s.Chunks() {
		t.Fatalf("chunks %v, want %d in app and %d in all", owners, held, a.s.Chunks())
	}
	if st, _ := a.s.Stats(); st.KernelFaults+st.TxInvalidDescs != 0 {
		t.Fatalf("stats %+v, want no faults", st)
	}
}

// finish gives everything back; every chunk must be free or in the fill ring.
func (a *actor) finish(t *testing.T, k *xsktest.Kernel) {
	t.Helper()
	a.s.Return(a.reserved)
	a.s.Release(a.received)
	waitFor(t, "an empty transmit ring", func() bool {
		_ = a.s.Flush() // fails at random
		k.Settle()
		a.s.Reserve(nil)
		return !a.s.Pending()
	})
	k.Settle()
	f := make([]xsk.RxFrame, 64)
	for n := a.s.Receive(f); n > 0; n = a.s.Receive(f) {
		a.s.Release(f[:n])
	}
	a.s.Reserve(nil)
	owners, ok := a.s.Census()
	fill := a.s.FillTarget()
	spare := smallRx - fill
	if !ok || owners["fill"] != fill || owners["free"] != 32+spare {
		t.Errorf("chunks %v, want %d in fill and 32 free, and %d spare", owners, fill, spare)
	}
}

// TestTwoThreads drives both ends at once: under the race detector this checks
// the order of the index words against the frames' bytes.
func TestTwoThreads(t *testing.T) {
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{})
	const total = 20_000
	echo := make(chan struct{})
	go func() { // the other end sends everything back in place
		defer close(echo)
		frames := make([]xsk.RxFrame, 8)
		for done := 0; done < total; {
			n := b.Receive(frames)
			b.Forward(frames[:n])
			for b.Pending() {
				if err := b.Flush(); err != nil {
					t.Error(err)
					return
				}
			}
			b.Reserve(nil)
			done += n
			if n == 0 {
				runtime.Gosched()
			}
		}
	}()
	const window = 8 // below every ring
	frames := make([]xsk.TxFrame, window)
	for first := uint32(0); first < total; first += window {
		waitFor(t, "free frames", func() bool {
			n := a.Reserve(frames)
			a.Return(frames[:n])
			return n == window
		})
		a.Reserve(frames)
		for i := range frames {
			n := 64 + int(first+uint32(i))%1400
			writeFrame(frames[i].Data[:n], first+uint32(i))
			frames[i].Len = n
		}
		a.Transmit(frames)
		flush(t, a)
		l := make([]int, window)
		for i := range l {
			l[i] = 64 + int(first+uint32(i))%1400
		}
		collect(t, a, window, expect(t, first, l...))
	}
	<-echo
}
