package xsktest_test

import (
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// raw is a socket on a fake kernel that the test drives by hand.
type raw struct {
	k    *xsktest.Kernel
	fd   int
	mem  []byte
	fill xsk.RingMemory[uint64]
	comp xsk.RingMemory[uint64]
	rx   xsk.RingMemory[xsk.Desc]
	tx   xsk.RingMemory[xsk.Desc]
}

// newRaw makes a bound socket with rings of 4 and 4 chunks.
func newRaw(t *testing.T, k *xsktest.Kernel) *raw {
	t.Helper()
	r := &raw{k: k}
	var err error
	must := func(e error) {
		t.Helper()
		if e != nil {
			t.Fatal(e)
		}
	}
	r.fd, err = k.Socket()
	must(err)
	r.mem, err = k.MapUMEM(4*4096, false)
	must(err)
	must(k.RegisterUMEM(r.fd, r.mem, 4096))
	for _, kind := range []xsk.RingKind{xsk.FillRing, xsk.CompletionRing, xsk.RxRing, xsk.TxRing} {
		must(k.SetRing(r.fd, kind, 4))
	}
	r.fill, err = k.MapAddrRing(r.fd, xsk.FillRing, 4)
	must(err)
	r.comp, err = k.MapAddrRing(r.fd, xsk.CompletionRing, 4)
	must(err)
	r.rx, err = k.MapDescRing(r.fd, xsk.RxRing, 4)
	must(err)
	r.tx, err = k.MapDescRing(r.fd, xsk.TxRing, 4)
	must(err)
	must(k.Bind(r.fd, 0, 1, 0))
	return r
}

// send puts descriptors into the TX ring and calls the kernel.
func (r *raw) send(descs ...xsk.Desc) unix.Errno {
	for _, d := range descs {
		at := r.tx.Producer.Load()
		r.tx.Entries[at%4] = d
		r.tx.Producer.Store(at + 1)
	}
	return r.k.Send(r.fd)
}

func TestMappingHoldsQueue(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	r := newRaw(t, k)
	if err := k.Close(r.fd); err != nil {
		t.Fatal(err)
	}
	for _, m := range [][]byte{r.fill.Mapping, r.comp.Mapping, r.rx.Mapping, r.tx.Mapping} {
		if len(k.Leaks()) == 1 {
			t.Error("the queue is free while a ring is mapped")
		}
		if err := k.UnmapRing(m); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.UnmapUMEM(r.mem); err != nil {
		t.Fatal(err)
	}
	if l := k.Leaks(); len(l) != 0 {
		t.Errorf("left open: %v", l)
	}
}

func TestInvalidDescriptors(t *testing.T) {
	for name, d := range map[string]xsk.Desc{
		"empty":           {Addr: 0, Len: 0},
		"across chunks":   {Addr: 4000, Len: 97},
		"outside":         {Addr: 4 * 4096, Len: 1},
		"unknown option":  {Addr: 0, Len: 64, Options: 4},
		"wraps around":    {Addr: 1<<64 - 1, Len: 2},
		"too long by one": {Addr: 3 * 4096, Len: 4097},
	} {
		k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
		r := newRaw(t, k)
		if e := r.send(d, xsk.Desc{Addr: 4096, Len: 64}); e != 0 {
			t.Errorf("%s: %v", name, e)
		}
		st, err := k.Statistics(r.fd)
		if err != nil || st.TxInvalidDescs != 1 {
			t.Errorf("%s: %d invalid descriptors, want 1 (%v)", name, st.TxInvalidDescs, err)
		}
		if n := r.comp.Producer.Load() - r.comp.Consumer.Load(); n != 0 {
			t.Errorf("%s: %d completions after an invalid descriptor, want 0", name, n)
		}
		if e := r.send(); e != 0 {
			t.Errorf("%s: %v", name, e)
		}
		if n := r.comp.Producer.Load() - r.comp.Consumer.Load(); n != 1 {
			t.Errorf("%s: %d completions of the valid one, want 1", name, n)
		}
	}
}

func TestFullCompletionRingStops(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	r := newRaw(t, k)
	var d [4]xsk.Desc
	for i := range d {
		d[i] = xsk.Desc{Addr: uint64(i) * 4096, Len: 64}
	}
	if e := r.send(d[:]...); e != 0 {
		t.Fatal(e)
	}
	if e := r.send(d[0]); e != unix.EAGAIN {
		t.Errorf("send with a full completion ring: %v, want EAGAIN", e)
	}
	r.comp.Consumer.Add(1)
	if e := r.send(); e != 0 {
		t.Errorf("send with room for one: %v", e)
	}
}

func TestOverrunPanics(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	r := newRaw(t, k)
	defer func() {
		if recover() == nil {
			t.Error("5 entries in a ring of 4 went unnoticed")
		}
	}()
	r.tx.Producer.Add(5)
	k.Send(r.fd)
}

func TestPollTimesOut(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	r := newRaw(t, k)
	e, err := k.Event()
	if err != nil {
		t.Fatal(err)
	}
	fds := []xsk.PollFD{{FD: int32(r.fd)}, {FD: int32(e)}, {FD: -1}}
	start := time.Now()
	ready, err := k.Poll(fds, 2*time.Millisecond, false)
	if err != nil || ready != (xsk.Ready{}) || time.Since(start) < 2*time.Millisecond {
		t.Errorf("poll: %+v, %v after %v", ready, err, time.Since(start))
	}
	if err := k.Notify(e); err != nil {
		t.Fatal(err)
	}
	if ready, _ := k.Poll(fds, -1, false); !ready.Event {
		t.Errorf("poll: %+v, want the event", ready)
	}
	fds[0] = fds[1]
	if _, err := k.Poll(fds, 0, false); !errors.Is(err, unix.ENOTSOCK) {
		t.Errorf("poll of an event as a socket: %v, want ENOTSOCK", err)
	}
}
