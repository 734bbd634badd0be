package xsk_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// Waiting, waking and the end, on the in-memory kernel.

func TestWakeBeforeWait(t *testing.T) {
	a, _, _, _ := fakeWire(t, xsktest.KernelOptions{})
	a.Wake()
	a.Wake()
	if err := a.Wait(-1); err != nil { // for ever, were it not for Wake
		t.Fatal(err)
	}
	if err := a.Wait(time.Millisecond); err != nil {
		t.Fatal(err)
	}
}

func TestWakeEndsWait(t *testing.T) {
	a, _, _, _ := fakeWire(t, xsktest.KernelOptions{})
	for range 1000 { // Wake comes before, into and at the end of Wait
		var wg sync.WaitGroup
		wg.Go(a.Wake)
		if err := a.Wait(-1); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
	}
}

// TestOtherDescriptorEndsWait: a descriptor of somebody else ends each Wait while it is readable,
// also one that sleeps when it is named, until none is named any more.
func TestOtherDescriptorEndsWait(t *testing.T) {
	a, _, k, _ := fakeWire(t, xsktest.KernelOptions{})
	other, err := k.Event()
	if err != nil {
		t.Fatal(err)
	}
	a.WakeOn(other)
	if err := a.Wait(-1); err != nil { // WakeOn ended it
		t.Fatal(err)
	}
	for range 100 {
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := k.Notify(other); err != nil {
				t.Error(err)
			}
		})
		for range 2 {
			if err := a.Wait(-1); err != nil {
				t.Fatal(err)
			}
		}
		wg.Wait()
		if err := k.Drain(other); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Close(other); err != nil {
		t.Fatal(err)
	}
}

// TestNoOtherDescriptor: the descriptor is that of the last call, none at first and after -1.
func TestNoOtherDescriptor(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	p := &pollRecorder{Kernel: k}
	cfg := small(k)
	cfg.Kernel = p
	s := open(t, k, cfg)
	for _, want := range []int{-1, 77, -1} {
		if want != -1 || p.others != nil {
			s.WakeOn(want)
			if err := s.Wait(-1); err != nil { // WakeOn ended it
				t.Fatal(err)
			}
		}
		p.kept, p.others = nil, nil
		if err := s.Wait(-1); err != nil || !slices.Equal(p.others, []int{want, want, want}) {
			t.Errorf("polls with %v, want %d: %v", p.others, want, err)
		}
	}
}

func TestFrameEndsWait(t *testing.T) {
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{})
	for i := range uint32(200) {
		var wg sync.WaitGroup
		wg.Go(func() { send(t, a, i, 64) })
		waitFor(t, "the frame", func() bool {
			if err := b.Wait(-1); err != nil {
				t.Fatal(err)
			}
			var f [1]xsk.RxFrame
			n := b.Receive(f[:])
			b.Release(f[:n])
			return n == 1
		})
		wg.Wait()
	}
}

func TestWaitRetriesEINTR(t *testing.T) {
	interrupted := 0
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{Hook: func(call string) error {
		if call == "Poll" && interrupted < 50 {
			interrupted++
			return unix.EINTR
		}
		return nil
	}})
	send(t, b, 0, 64) // which the poll after all those finds
	if err := a.Wait(-1); err != nil || interrupted != 50 {
		t.Fatalf("interrupted %d times, then %v", interrupted, err)
	}
	var rx [1]xsk.RxFrame
	a.Release(rx[:a.Receive(rx[:])])
	interrupted = 49
	start := time.Now()
	const timeout = 20 * time.Millisecond
	if err := a.Wait(timeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < timeout || interrupted != 50 {
		t.Errorf("wait took %v, interrupted %d times, want %v", took, interrupted-49, timeout)
	}
}

func TestDeletedDevice(t *testing.T) {
	a, _, ka, _ := fakeWire(t, xsktest.KernelOptions{})
	var f [1]xsk.TxFrame
	a.Reserve(f[:])
	f[0].Len = 64
	a.Transmit(f[:])
	ka.Delete()
	if err := a.Wait(-1); !errors.Is(err, unix.ENODEV) {
		t.Errorf("wait: %v, want ENODEV", err)
	}
	if err := a.Flush(); !errors.Is(err, unix.ENXIO) {
		t.Errorf("flush: %v, want ENXIO", err)
	}
}

func TestClosedSocket(t *testing.T) {
	a, b, ka, _ := fakeWire(t, xsktest.KernelOptions{})
	send(t, a, 0, 64)
	send(t, b, 0, 64)
	var rx [2]xsk.RxFrame
	var tx [2]xsk.TxFrame
	if a.Receive(rx[:1]) != 1 || a.Reserve(tx[:1]) != 1 {
		t.Fatal("no frames to hold")
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if l := ka.Leaks(); len(l) != 0 {
		t.Errorf("left open: %v", l)
	}
	a.Wake()
	a.Release(rx[:1])
	a.Return(tx[:1])
	if n := a.Receive(rx[:]) + a.Reserve(tx[:]) + a.Forward(rx[:]); n != 0 || a.Pending() {
		t.Errorf("a closed socket moved %d frames", n)
	}
	_, statsErr := a.Stats()
	for name, err := range map[string]error{
		"flush": a.Flush(), "wait": a.Wait(-1), "stats": statsErr,
	} {
		if !errors.Is(err, xsk.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", name, err)
		}
	}
}

// pollRecorder notes how each poll was made and lets it run out of time.
type pollRecorder struct {
	*xsktest.Kernel
	kept   []bool
	time   []time.Duration
	others []int
}

func (p *pollRecorder) Poll(fds []xsk.PollFD, t time.Duration, keepCPU bool) (xsk.Ready, error) {
	p.kept, p.time = append(p.kept, keepCPU), append(p.time, t)
	p.others = append(p.others, int(fds[len(fds)-1].FD))
	if len(p.kept) < 3 {
		return xsk.Ready{}, nil
	}
	return xsk.Ready{Receive: true}, nil
}

// TestDedicatedHoldsTheFirstPollOnly: only who asked for it keeps the processor,
// for 5 ms, and then sleeps like everybody else.
func TestDedicatedHoldsTheFirstPollOnly(t *testing.T) {
	for _, dedicated := range []bool{false, true} {
		k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
		p := &pollRecorder{Kernel: k}
		cfg := small(k)
		cfg.Kernel, cfg.Dedicated = p, dedicated
		s := open(t, k, cfg)
		if err := s.Wait(-1); err != nil {
			t.Fatal(err)
		}
		first := time.Second
		if dedicated {
			first = 5 * time.Millisecond
		}
		if want := []bool{dedicated, false, false}; !slices.Equal(p.kept, want) ||
			!slices.Equal(p.time, []time.Duration{first, time.Second, time.Second}) {
			t.Errorf("dedicated %t: polls kept %v, of %v", dedicated, p.kept, p.time)
		}
	}
}
