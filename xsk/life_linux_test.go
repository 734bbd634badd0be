package xsk_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/xsk"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// The tests of this file open and close sockets on a veth pair, and take the
// interface down and away.

// cycles is how often a queue is opened and closed.
func cycles() int {
	switch {
	case raceEnabled || testing.Short():
		return 200
	}
	return 1000
}

func TestVethOpenClose(t *testing.T) {
	// The kernel gives a queue back some milliseconds after Close: others are opened meanwhile.
	const queues = 16
	p := xsktest.NewPair(t, xsktest.Options{Queues: queues})
	cfg := xsk.Config{
		Interface: vethpair.IfName, RxFrames: 256, TxFrames: 256,
		BindTimeout: timeout.Scaled(xsk.DefaultBindTimeout),
	}
	cycle := func() {
		cfg.Queue = (cfg.Queue + 1) % queues
		s, err := xsk.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	p.Do(xsktest.A, func() {
		cycle() // the runtime opens what it needs
		before := readHoldings()
		for range cycles() {
			cycle()
		}
		after := readHoldings()
		// The Go heap and its threads grow by some 64 MiB; each cycle maps 2 MiB.
		slackKB := cycles() << 10
		if after.fds != before.fds || after.mappings != 0 || after.events != before.events ||
			after.memoryKB > before.memoryKB+slackKB {
			t.Errorf("after %d cycles %+v, before %+v", cycles(), after, before)
		}
	})
}

func TestVethOpenFailsAtEachCall(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	p.Do(xsktest.A, func() {
		cfg := xsk.Config{
			Interface: vethpair.IfName, RxFrames: 256, TxFrames: 256, SndBuf: 1 << 20,
			BindTimeout: timeout.Scaled(xsk.DefaultBindTimeout),
		}
		all := &xsktest.Failing{Kernel: xsk.Linux()}
		cfg.Kernel = all
		s, err := xsk.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		before := readHoldings()
		for at := 1; at <= all.Calls(); at++ {
			cfg.Kernel = &xsktest.Failing{Kernel: xsk.Linux(), At: at}
			if _, err := xsk.Open(cfg); !errors.Is(err, unix.EIO) {
				t.Errorf("call %d: %v, want EIO", at, err)
			}
			if h := readHoldings(); h.fds != before.fds || h.mappings != before.mappings {
				t.Errorf("call %d: holds %+v, before %+v", at, h, before)
			}
		}
		cfg.Kernel = nil // the queue is free again
		if s, err = xsk.Open(cfg); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

func TestVethQueueTaken(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	openOn(t, p, xsktest.A, xsk.Config{})
	p.Do(xsktest.A, func() {
		_, err := xsk.Open(xsk.Config{
			Interface: vethpair.IfName, RxFrames: 64, TxFrames: 64,
			BindTimeout: 20 * time.Millisecond,
		})
		var e *xsk.Error
		if !errors.Is(err, unix.EBUSY) || !errors.As(err, &e) || e.Op != "bind" {
			t.Fatalf("error %v, want EBUSY of bind", err)
		}
		if me := "pid " + strconv.Itoa(os.Getpid()); !strings.Contains(e.Hint, me) {
			t.Errorf("hint %q, want %q", e.Hint, me)
		}
	})
}

func TestVethErrors(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	p.Do(xsktest.A, func() {
		for _, tc := range []struct {
			cfg  xsk.Config
			want error
		}{
			{xsk.Config{Interface: "nosuch0"}, unix.ENODEV},
			{xsk.Config{Interface: vethpair.IfName, Queue: 9}, unix.EINVAL},
			{xsk.Config{Interface: vethpair.IfName, Mode: xsk.ModeZeroCopy}, unix.EOPNOTSUPP},
		} {
			tc.cfg.RxFrames, tc.cfg.TxFrames = 64, 64
			if _, err := xsk.Open(tc.cfg); !errors.Is(err, tc.want) {
				t.Errorf("%+v: %v, want %v", tc.cfg, err, tc.want)
			}
		}
	})
}

func TestVethProbe(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	p.Do(xsktest.A, func() {
		s, err := xsk.Probe(p.A.Ifindex, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Features() {
			t.Log(f)
		}
		if !s.Copy.OK || s.ZeroCopy.OK || !errors.Is(s.ZeroCopy.Err, unix.EOPNOTSUPP) {
			t.Errorf("a veth has copy mode and no zero-copy: %v, %v", s.Copy, s.ZeroCopy)
		}
	})
}

// setUp takes one end of the pair up or down.
func setUp(t *testing.T, p *xsktest.Pair, side vethpair.Side, up bool) {
	t.Helper()
	p.Do(side, func() {
		l, err := netlink.LinkByName(p.End(side).Name)
		if err == nil && up {
			err = netlink.LinkSetUp(l)
		} else if err == nil {
			err = netlink.LinkSetDown(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

// queue puts frames into the TX ring without flushing.
func queue(t *testing.T, s *xsk.Socket, first uint32, lengths ...int) {
	t.Helper()
	f := make([]xsk.TxFrame, len(lengths))
	if n := s.Reserve(f); n != len(f) {
		t.Fatalf("reserved %d frames, want %d", n, len(f))
	}
	for i, n := range lengths {
		writeFrame(f[i].Data[:n], first+uint32(i))
		f[i].Len = n
	}
	s.Transmit(f)
}

func TestVethLinkDown(t *testing.T) {
	p, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{})
	l := lengths(40, 60, 1500)
	setUp(t, p, xsktest.A, false)
	queue(t, a, 0, l...)
	for range 3 {
		if err := a.Flush(); !errors.Is(err, unix.ENETDOWN) {
			t.Fatalf("flush: %v, want ENETDOWN", err)
		}
	}
	if st, _ := a.Stats(); st.TxNetDown != 3 || !a.Pending() {
		t.Errorf("ENETDOWN counted %d times, want 3; pending %t", st.TxNetDown, a.Pending())
	}
	if st, _ := a.Stats(); st.TxOutstanding != uint64(len(l)) {
		t.Errorf("%d descriptors outstanding, want %d", st.TxOutstanding, len(l))
	}
	setUp(t, p, xsktest.A, true)
	flush(t, a)
	collect(t, b, len(l), expect(t, 0, l...))
	if st, _ := a.Stats(); st.TxBusy != 0 {
		t.Errorf("%d frames were dropped", st.TxBusy)
	}
	waitFor(t, "all descriptors to come back", func() bool {
		a.Reserve(nil)
		st, _ := a.Stats()
		return st.TxOutstanding == 0
	})
}

// TestVethBusyIsLoss sends into a wire whose far end is down: each frame is one
// EBUSY and completes.
func TestVethBusyIsLoss(t *testing.T) {
	p, a, b := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{})
	setUp(t, p, xsktest.B, false)
	queue(t, a, 0, lengths(40, 60, 1500)...)
	waitFor(t, "an empty transmit ring", func() bool { flush(t, a); return !a.Pending() })
	if st, _ := a.Stats(); st.TxBusy != 40 {
		t.Errorf("%d EBUSY, want 40", st.TxBusy)
	}
	waitFor(t, "completions", func() bool {
		a.Reserve(nil)
		owners, ok := a.Census()
		return ok && owners["tx"] == 0
	})
	setUp(t, p, xsktest.B, true)
	send(t, a, 100, 64, 65)
	collect(t, b, 2, expect(t, 100, 64, 65))
}

// TestVethEveryLossIsCounted overruns the ring of a veth without queueing
// discipline, whose receiver is a kernel thread.
func TestVethEveryLossIsCounted(t *testing.T) {
	for name, o := range map[string]xsktest.Options{
		"noqueue": {NoAddrs: true, NoQdisc: true, Threaded: true},
		"pfifo":   {NoAddrs: true, Threaded: true},
	} {
		t.Run(name, func(t *testing.T) {
			_, a, b := wire(t, o, xsk.Config{RxFrames: 8192, TxFrames: 4096, SndBuf: 8 << 20})
			const total = 40_000
			received := uint64(0)
			frames := make([]xsk.RxFrame, 64)
			receive := func() {
				n := b.Receive(frames)
				b.Release(frames[:n])
				received += uint64(n)
			}
			for i := uint32(0); i < total; i += 1000 {
				send(t, a, i, make1000...)
				receive()
			}
			var st, sb xsk.Stats
			waitFor(t, "all frames to arrive or be counted as lost", func() bool {
				receive()
				st, _ = a.Stats()
				sb, _ = b.Stats()
				return received+st.TxBusy+sb.RxDropped+sb.RxRingFull == total
			})
			t.Logf("%d of %d arrived, %d EBUSY, %d at the receiver",
				received, total, st.TxBusy, sb.RxDropped+sb.RxRingFull)
			if name == "pfifo" && st.TxBusy != 0 {
				t.Errorf("%d EBUSY in spite of the pfifo, want 0", st.TxBusy)
			}
		})
	}
}

// make1000 are the lengths of 1000 small frames.
var make1000 = lengths(1000, 64, 64)

func TestVethDeviceDeleted(t *testing.T) {
	p, a, _ := wire(t, xsktest.Options{NoAddrs: true}, xsk.Config{})
	queue(t, a, 0, 64)
	waited := make(chan error)
	go func() { waited <- a.Wait(-1) }()
	p.Do(xsktest.A, func() {
		l, err := netlink.LinkByName(p.A.Name)
		if err == nil {
			err = netlink.LinkDel(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	select {
	case err := <-waited:
		if !errors.Is(err, unix.ENODEV) {
			t.Errorf("wait: %v, want ENODEV", err)
		}
	case <-time.After(testTimeout):
		t.Fatal("wait goes on without a device")
	}
	queue(t, a, 1, 64)
	if err := a.Flush(); !errors.Is(err, unix.ENXIO) {
		t.Errorf("flush: %v, want ENXIO", err)
	}
}

// taskEnv names what a child process of the tests does instead of testing.
const taskEnv = "XSK_TEST_TASK"

var tasks = map[string]func() int{
	// hold opens a socket, says so and is killed.
	"hold": func() int {
		_, err := xsk.Open(xsk.Config{Interface: vethpair.IfName, RxFrames: 64, TxFrames: 64})
		fmt.Println("open:", err)
		time.Sleep(time.Hour)
		return 0
	},
}

func TestVethOwnerKilled(t *testing.T) {
	p := xsktest.NewPair(t, xsktest.Options{})
	p.Do(xsktest.A, func() {
		child := exec.Command("/proc/self/exe")
		child.Env = append(os.Environ(), taskEnv+"=hold")
		out, err := child.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		buf := make([]byte, 100)
		n, err := out.Read(buf)
		if err != nil || string(buf[:n]) != "open: <nil>\n" {
			t.Errorf("child says %q, %v", buf[:n], err)
		}
		cfg := xsk.Config{
			Interface: vethpair.IfName, RxFrames: 64, TxFrames: 64, BindTimeout: time.Millisecond,
		}
		holder := "pid " + strconv.Itoa(child.Process.Pid)
		_, err = xsk.Open(cfg)
		if !errors.Is(err, unix.EBUSY) || !strings.Contains(err.Error(), holder) {
			t.Errorf("open while the child lives: %v, want EBUSY and %s", err, holder)
		}
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait() // says that it was killed
		cfg.BindTimeout = timeout.Scaled(xsk.DefaultBindTimeout)
		s, err := xsk.Open(cfg)
		if err != nil {
			t.Fatalf("open after the child was killed: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
