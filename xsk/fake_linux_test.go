package xsk_test

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/xsktest"
)

// The tests of this file run on the in-memory kernel: no privileges, and the
// race detector sees both sides of the rings.

// smallRx receive frames fill their ring to the last slot, and with the transmit
// frames of two chunks the others, too.
const smallRx = 32

// small is a configuration whose rings wrap soon.
func small(k xsk.Kernel) xsk.Config {
	return xsk.Config{Interface: "fake0", RxFrames: smallRx, TxFrames: 16, Kernel: k}
}

// open opens a socket that the test closes; then nothing may be left.
func open(t testing.TB, k *xsktest.Kernel, cfg xsk.Config) *xsk.Socket {
	t.Helper()
	s, err := xsk.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if l := k.Leaks(); len(l) != 0 {
			t.Errorf("left open: %v", l)
		}
	})
	return s
}

// fakeWire opens a socket on each end of an in-memory wire.
func fakeWire(t testing.TB, o xsktest.KernelOptions) (a, b *xsk.Socket, ka, kb *xsktest.Kernel) {
	t.Helper()
	ka, kb = xsktest.NewWire(o, xsktest.KernelOptions{MTU: o.MTU})
	return open(t, ka, small(ka)), open(t, kb, small(kb)), ka, kb
}

func TestOpenFailsAtEachCall(t *testing.T) {
	for at := 1; ; at++ {
		calls := 0
		k, _ := xsktest.NewWire(xsktest.KernelOptions{Hook: func(string) error {
			calls++
			if calls == at {
				return unix.EIO
			}
			return nil
		}}, xsktest.KernelOptions{})
		s, err := xsk.Open(small(k))
		if err == nil {
			if calls >= at {
				t.Fatalf("call %d failed and Open did not", at)
			}
			if at < 15 {
				t.Fatalf("Open made %d calls, want at least 15: the test does not reach them", at)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return
		}
		if !errors.Is(err, unix.EIO) {
			t.Errorf("call %d: %v, want EIO", at, err)
		}
		var e *xsk.Error
		if !errors.As(err, &e) {
			t.Errorf("call %d: %v is no *xsk.Error", at, err)
		}
		if l := k.Leaks(); len(l) != 0 {
			t.Errorf("call %d: left open: %v", at, l)
		}
	}
}

func TestOpenAgain(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{Linger: 3}, xsktest.KernelOptions{})
	for range 20 {
		s, err := xsk.Open(small(k)) // finds the queue taken 3 times
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatalf("second close: %v", err)
		}
		if l := k.Leaks(); len(l) != 0 {
			t.Fatalf("left open: %v", l)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	hook := func(call string, errno unix.Errno) func(string) error {
		return func(c string) error {
			if c == call {
				return errno
			}
			return nil
		}
	}
	for _, tc := range []struct {
		name   string
		hook   func(string) error
		change func(*xsk.Config)
		want   error
		text   string
	}{
		{"no privilege", hook("Socket", unix.EPERM), nil, unix.EPERM, "CAP_NET_RAW"},
		{"no AF_XDP", hook("Socket", unix.EAFNOSUPPORT), nil, unix.EAFNOSUPPORT, "CONFIG_XDP_SOCKETS"},
		{"locked memory", hook("RegisterUMEM", unix.ENOBUFS), nil, unix.ENOBUFS, "ulimit -l"},
		{
			"queue number", nil, func(c *xsk.Config) { c.Queue = 7 },
			unix.EINVAL, "queue 7",
		},
		{
			"zero-copy", nil, func(c *xsk.Config) { c.Mode = xsk.ModeZeroCopy },
			unix.EOPNOTSUPP, "copy mode",
		},
		{
			"busy polling", hook("SetBusyPoll", unix.EPERM), func(c *xsk.Config) { c.BusyPoll = 20 },
			unix.EPERM, "CAP_NET_ADMIN",
		},
		{
			"interface", nil, func(c *xsk.Config) { c.Interface = "fake1" },
			unix.ENODEV, "fake1",
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			k, _ := xsktest.NewWire(xsktest.KernelOptions{Hook: tc.hook}, xsktest.KernelOptions{})
			cfg := small(k)
			if tc.change != nil {
				tc.change(&cfg)
			}
			_, err := xsk.Open(cfg)
			if !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want %v and %q", err, tc.want, tc.text)
			}
		})
	}
}

func TestOpenTakenQueue(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	open(t, k, small(k))
	cfg := small(k)
	cfg.BindTimeout = 5 * time.Millisecond
	_, err := xsk.Open(cfg)
	if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), "pid 1 (fake)") {
		t.Errorf("error %v, want EBUSY and the holder", err)
	}
}

func TestOpenWithoutBudgetOption(t *testing.T) {
	a, b, _, _ := fakeWire(t, xsktest.KernelOptions{OldTx: true})
	l := lengths(16, 60, 1500)
	send(t, a, 0, l...)
	collect(t, b, len(l), expect(t, 0, l...))
}

func TestConfigValidate(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(*xsk.Config)
		text   string
	}{
		{"no interface", func(c *xsk.Config) { c.Interface = "" }, "no interface"},
		{"chunk size", func(c *xsk.Config) { c.ChunkSize = 3000 }, "power of two"},
		{"large chunk", func(c *xsk.Config) { c.ChunkSize = 8192 }, "ChunkSize is 8192"},
		{"ring size", func(c *xsk.Config) { c.RxRing = 48 }, "power of two"},
		{"budget", func(c *xsk.Config) { c.TxBudget = 512 }, "TxBudget is 512"},
		{"queue", func(c *xsk.Config) { c.Queue = -1 }, "Queue is -1"},
		{"frames", func(c *xsk.Config) { c.RxFrames = -1 }, "RxFrames is -1"},
		{"short fill ring", func(c *xsk.Config) { c.FillRing = 16 }, "FillRing is 16"},
		{"short completion ring", func(c *xsk.Config) { c.CompletionRing = 32 }, "CompletionRing is 32"},
		{"short transmit ring", func(c *xsk.Config) { c.TxRing = 32 }, "TxRing is 32"},
	} {
		k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
		cfg := small(k)
		tc.change(&cfg)
		if _, err := xsk.Open(cfg); err == nil || !strings.Contains(err.Error(), tc.text) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.text)
		}
		if l := k.Leaks(); len(l) != 0 {
			t.Errorf("%s: left open: %v", tc.name, l)
		}
	}
}

// TestFlushErrors plays each result of the send call once, with 4 frames queued.
func TestFlushErrors(t *testing.T) {
	for _, tc := range []struct {
		errno     unix.Errno
		err       error
		delivered int // before the call is repeated without the error
		want      xsk.Stats
	}{
		{0, nil, 4, xsk.Stats{TxKicks: 1}},
		{unix.EAGAIN, nil, 0, xsk.Stats{TxKicks: 1, TxAgain: 1}},
		{unix.EBUSY, nil, 3, xsk.Stats{TxKicks: 2, TxBusy: 1}},
		{unix.EINTR, nil, 4, xsk.Stats{TxKicks: 2}},
		{unix.ENOBUFS, nil, 0, xsk.Stats{TxKicks: 1, TxNoBufs: 1}},
		{unix.ENETDOWN, unix.ENETDOWN, 0, xsk.Stats{TxKicks: 1, TxNetDown: 1}},
		{unix.ENXIO, unix.ENXIO, 0, xsk.Stats{TxKicks: 1}},
		{unix.EINVAL, unix.EINVAL, 0, xsk.Stats{TxKicks: 1}},
	} {
		t.Run(tc.errno.Error(), func(t *testing.T) {
			fail := true
			a, b, _, _ := fakeWire(t, xsktest.KernelOptions{Hook: func(call string) error {
				if call != "Send" || !fail || tc.errno == 0 {
					return nil
				}
				fail = false
				return tc.errno
			}})
			var f [4]xsk.TxFrame
			a.Reserve(f[:])
			for i := range f {
				writeFrame(f[i].Data[:100], uint32(i))
				f[i].Len = 100
			}
			a.Transmit(f[:])
			if err := a.Flush(); !errors.Is(err, tc.err) {
				t.Errorf("flush: %v, want %v", err, tc.err)
			}
			got, err := a.Stats()
			if err != nil {
				t.Fatal(err)
			}
			got.TxPackets, got.TxBytes = 0, 0
			if got != tc.want {
				t.Errorf("stats %+v, want %+v", got, tc.want)
			}
			collect(t, b, tc.delivered, func(uint32, []byte) {})
			if left := tc.delivered == 0; a.Pending() != left {
				t.Errorf("pending %t, want %t", a.Pending(), left)
			}
			flush(t, a)
			if tc.delivered == 0 { // nothing was lost
				collect(t, b, 4, expect(t, 0, 100, 100, 100, 100))
			}
		})
	}
}

// TestFlushManyFrames sends more than the kernel handles in one call.
func TestFlushManyFrames(t *testing.T) {
	ka, kb := xsktest.NewWire(xsktest.KernelOptions{OldTx: true}, xsktest.KernelOptions{})
	cfg := small(ka)
	cfg.TxFrames = 4 * xsktest.TxBatch
	a := open(t, ka, cfg)
	cfg.RxFrames, cfg.Kernel = cfg.TxFrames, kb
	b := open(t, kb, cfg)
	f := make([]xsk.TxFrame, cfg.TxFrames)
	if n := a.Reserve(f); n != len(f) {
		t.Fatalf("reserved %d frames, want %d", n, len(f))
	}
	l := make([]int, len(f))
	for i := range f {
		l[i] = 64
		writeFrame(f[i].Data[:64], uint32(i))
		f[i].Len = 64
	}
	a.Transmit(f)
	flush(t, a)
	if a.Pending() {
		t.Error("frames are pending after one Flush")
	}
	collect(t, b, len(l), expect(t, 0, l...))
	if st, _ := a.Stats(); st.TxKicks != 4 || st.TxAgain != 3 {
		t.Errorf("%d calls with %d EAGAIN, want 4 and 3", st.TxKicks, st.TxAgain)
	}
}

// TestTransmitBehindStaleIndex queues more than fits by the kernel's index, which
// lags behind what it completed.
func TestTransmitBehindStaleIndex(t *testing.T) {
	results := []error{unix.EBUSY, unix.EBUSY, unix.ENOBUFS}
	ka, kb := xsktest.NewWire(xsktest.KernelOptions{Hook: func(call string) error {
		if call != "Send" || len(results) == 0 {
			return nil
		}
		err := results[0]
		results = results[1:]
		return err
	}}, xsktest.KernelOptions{})
	cfg := small(ka)
	cfg.RxFrames, cfg.TxFrames = 1, 15 // a TX ring of 16
	a := open(t, ka, cfg)
	b := open(t, kb, small(kb))
	l := lengths(15, 60, 1500)
	queue(t, a, 0, l...)
	flush(t, a) // two frames were dropped and completed, the index tells of none
	queue(t, a, 15, 64, 65)
	flush(t, a)
	collect(t, b, 15, expect(t, 2, append(l[2:], 64, 65)...))
}

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
		t.Error("the books are wrong")
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

// TestConservation does random operations on both ends of a wire whose kernels
// fail at random, and checks that no chunk is lost or doubled.
func TestConservation(t *testing.T) {
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
	ends := []*actor{{s: open(t, ka, small(ka))}, {s: open(t, kb, small(kb))}}
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

// check compares the socket's books with what the actor holds.
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

// finish gives everything back; every chunk must come home.
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
	if owners, ok := a.s.Census(); !ok || owners["fill"] != smallRx || owners["free"] != 32 {
		t.Errorf("chunks %v, want 32 in fill and 32 free", owners)
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
	polls := 0
	a, _, _, _ := fakeWire(t, xsktest.KernelOptions{Hook: func(call string) error {
		if call == "Poll" {
			if polls++; polls < 50 {
				return unix.EINTR
			}
		}
		return nil
	}})
	start := time.Now()
	const timeout = 20 * time.Millisecond
	if err := a.Wait(timeout); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(start); took < timeout || polls < 50 {
		t.Errorf("wait took %v in %d polls, want %v and at least 50", took, polls, timeout)
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

func TestBusyPollKicks(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	cfg := small(k)
	cfg.BusyPoll = 20
	s := open(t, k, cfg)
	s.Receive(make([]xsk.RxFrame, 1))
	if st, _ := s.Stats(); st.RxKicks != 1 {
		t.Errorf("%d receive calls by an empty-handed Receive, want 1", st.RxKicks)
	}
}

func TestProbeFake(t *testing.T) {
	k, _ := xsktest.NewWire(xsktest.KernelOptions{OldTx: true, Linger: 2}, xsktest.KernelOptions{})
	s, err := xsk.ProbeKernel(k, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]error{
		"copy mode": nil, "zero-copy mode": unix.EOPNOTSUPP, "multi-buffer frames": nil,
		"multi-buffer frames in zero-copy mode": unix.EOPNOTSUPP,
		"preferred busy polling":                nil, "send budget": unix.ENOPROTOOPT,
	}
	for _, f := range s.Features() {
		if w, ok := want[f.Name]; !ok || !errors.Is(f.Err, w) || f.OK != (w == nil) {
			t.Errorf("%v, want %v", f, w)
		}
	}
	if _, err := xsk.ProbeKernel(k, 2, 0); !errors.Is(err, unix.ENODEV) {
		t.Errorf("no such interface: %v, want ENODEV", err)
	}
	if l := k.Leaks(); len(l) != 0 {
		t.Errorf("left open: %v", l)
	}
}

// TestNoAllocations runs every method of the data path.
func TestNoAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	quiet := quietKernel{}
	quiet.Kernel, _ = xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
	cfg := small(&quiet)
	s, err := xsk.Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	tx, rx := make([]xsk.TxFrame, 8), make([]xsk.RxFrame, 8)
	allocs := testing.AllocsPerRun(100, func() {
		n := s.Reserve(tx)
		for i := range tx[:n] {
			tx[i].Len = 64
		}
		s.Return(tx[n/2 : n])
		s.Transmit(tx[:n/2])
		if err := s.Flush(); err != nil && !errors.Is(err, unix.ENETDOWN) {
			t.Fatal(err)
		}
		s.Pending()
		s.Wake()
		if err := s.Wait(0); err != nil {
			t.Fatal(err)
		}
		if err := s.Wait(0); err != nil {
			t.Fatal(err)
		}
		s.Release(rx[:s.Receive(rx)])
	})
	if allocs != 0 {
		t.Errorf("%v allocations in a round, want 0", allocs)
	}
}

// quietKernel answers the calls of the data path without allocating.
type quietKernel struct{ *xsktest.Kernel }

func (*quietKernel) Send(int) unix.Errno { return unix.ENETDOWN }
func (*quietKernel) Recv(int) unix.Errno { return unix.ENETDOWN }
func (*quietKernel) Poll(int, int, time.Duration) (xsk.Ready, error) {
	return xsk.Ready{}, nil
}

func TestErrorText(t *testing.T) {
	e := &xsk.Error{Op: "bind", Ifindex: 3, Queue: 1, Err: unix.EBUSY, Hint: "stop it"}
	const want = "xsk: bind (ifindex 3 queue 1): device or resource busy: stop it"
	if e.Error() != want {
		t.Errorf("%q, want %q", e.Error(), want)
	}
	if !bytes.Contains([]byte(xsk.ModeZeroCopy.String()), []byte("zero")) {
		t.Errorf("mode is called %v", xsk.ModeZeroCopy)
	}
}

// BenchmarkReserveReturn shows that taking a free frame does not search for it.
func BenchmarkReserveReturn(b *testing.B) {
	for _, frames := range []int{128, 4096, 16384} {
		b.Run(strconv.Itoa(frames), func(b *testing.B) {
			k, _ := xsktest.NewWire(xsktest.KernelOptions{}, xsktest.KernelOptions{})
			cfg := small(k)
			cfg.TxFrames = frames
			s := open(b, k, cfg)
			held := make([]xsk.TxFrame, frames-64) // most are in use
			s.Reserve(held)
			f := make([]xsk.TxFrame, 64)
			for b.Loop() {
				s.Return(f[:s.Reserve(f)])
			}
		})
	}
}
