package xsk_test

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
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
		{
			"no AF_XDP", hook("Socket", unix.EAFNOSUPPORT), nil,
			unix.EAFNOSUPPORT, "CONFIG_XDP_SOCKETS",
		},
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
			"busy polling", hook("SetBusyPoll", unix.EPERM),
			func(c *xsk.Config) { c.BusyPoll = 20 },
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
		{"fill target", func(c *xsk.Config) { c.FillTarget = c.RxFrames + 1 }, "FillTarget is 33"},
		{"short fill ring", func(c *xsk.Config) { c.FillRing = 16 }, "FillRing is 16"},
		{
			"short completion ring",
			func(c *xsk.Config) { c.CompletionRing = 32 }, "CompletionRing is 32",
		},
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
			if got.TxOutstanding != 4 { // what the kernel has given back is taken later
				t.Errorf("%d descriptors outstanding", got.TxOutstanding)
			}
			got.TxPackets, got.TxBytes, got.TxOutstanding = 0, 0, 0
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

// TestZeroCopy checks that the mode is reported, what a frame may be then, and
// that a driver which sits on sent frames is called.
func TestZeroCopy(t *testing.T) {
	for _, tc := range []struct {
		mode     xsk.Mode
		mtu      int
		zeroCopy bool
		maxFrame int
	}{
		{xsk.ModeAuto, 1500, true, 1518},
		{xsk.ModeZeroCopy, 9000, true, 2 * 3456},
		{xsk.ModeCopy, 9000, false, 2 * 3840},
	} {
		ka, _ := xsktest.NewWire(
			xsktest.KernelOptions{MTU: tc.mtu, ZeroCopy: true, Lag: 1000}, xsktest.KernelOptions{})
		cfg := small(ka)
		cfg.Mode = tc.mode
		s := open(t, ka, cfg)
		if i := s.Info(); i.ZeroCopy != tc.zeroCopy || i.MaxFrame != tc.maxFrame {
			t.Errorf("%v: info %+v, want zero-copy %t and frames of %d bytes",
				tc.mode, i, tc.zeroCopy, tc.maxFrame)
		}
		send(t, s, 0, lengths(16, 64, 1000)...)
		before, _ := s.Stats()
		if n := s.Reserve(make([]xsk.TxFrame, 1)); n != 0 {
			t.Errorf("%v: reserved %d frames while all are on their way", tc.mode, n)
		}
		after, _ := s.Stats()
		if called := after.TxKicks > before.TxKicks; called != tc.zeroCopy {
			t.Errorf("%v: an empty-handed Reserve calls the driver: %t", tc.mode, called)
		}
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
func (*quietKernel) Poll([]xsk.PollFD, time.Duration, bool) (xsk.Ready, error) {
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
