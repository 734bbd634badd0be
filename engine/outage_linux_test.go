package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"xroce/bpf"
	"xroce/engine"
	"xroce/roce"
	"xroce/xsk"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// TestLoopSleepsInAnOutage: while the interface is down nobody calls the kernel all the time, not
// even a driver that is to be busy, and the QP learns that its peer is out of reach.
func TestLoopSleepsInAnOutage(t *testing.T) {
	for _, o := range []engine.Options{{}, {Busy: true}} {
		var calls, sleeps atomic.Int64
		p := &scriptedPair{count: func(call string) {
			calls.Add(1)
			if call == "Poll" {
				sleeps.Add(1)
			}
		}}
		p.open(t, [2]engine.Options{o, {}})
		a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
		connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 16})
		before, beyond := newSide(t, p.devs[0]), newSide(t, p.devs[1])
		connectWith(t, before, beyond, outlasting)
		exchange(t, before, beyond, 4096)
		p.kernels[0].SetDown(true)
		calls.Store(0)
		sleeps.Store(0)
		began := time.Now()
		postWrites(t, a, b, 1, 4096)
		awaitFlush(t, a, 1)
		took := time.Since(began)
		// Some calls for each of eight sends, and ten looks a second. Without sleep it were
		// ten thousand.
		if limit := 500 + 50*int64(took/time.Second); calls.Load() > limit || sleeps.Load() == 0 {
			t.Errorf("%d calls of the kernel in %v, %d of them to sleep; want %d at most",
				calls.Load(), took, sleeps.Load(), limit)
		}
		if n := counterOf(t, p.devs[0], "port_xmit_discards"); n == 0 {
			t.Error("no frame was discarded")
		}
		if n := counterOf(t, p.devs[0], "link_downed"); n != 1 {
			t.Errorf("%d outages, want 1", n)
		}
		// What the ring had is of a QP that has ended: it may not leave.
		b.see()
		clear(b.mr.Bytes())
		b.see()
		p.kernels[0].SetDown(false)
		c, d := newSide(t, p.devs[0]), newSide(t, p.devs[1])
		connect(t, c, d)
		exchange(t, c, d, 64<<10)
		if n := counterOf(t, p.devs[0], "link_error_recovery"); n != 1 {
			t.Errorf("%d sockets made anew, want 1", n)
		}
		b.see()
		for i, v := range b.mr.Bytes() {
			if v != 0 {
				t.Fatalf("byte %d was written by a queue pair that has ended", i)
			}
		}
	}
}

// TestIdleLoopSleepsWhileThePortIsDown: who is to be busy and sends nothing learns from the host
// that the port is down, and sleeps; it is busy again, and what comes is taken, when it is up.
func TestIdleLoopSleepsWhileThePortIsDown(t *testing.T) {
	p := &scriptedPair{}
	sleeps := make(chan struct{}, 1)
	p.count = func(call string) {
		if call == "Poll" {
			select {
			case sleeps <- struct{}{}:
			default:
			}
		}
	}
	states := make(chan bool)
	p.watched = states
	p.open(t, [2]engine.Options{{Busy: true}, {}})
	a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
	connectWith(t, a, b, outlasting)
	exchange(t, a, b, 4096)
	if len(sleeps) != 0 {
		t.Error("a busy loop sleeps while the port is up")
	}
	states <- false
	select {
	case <-sleeps:
	case <-time.After(timeout.Scaled(20 * time.Second)):
		t.Fatal("a busy loop does not sleep while the port is down")
	}
	states <- true
	exchange(t, a, b, 4096)
	exchange(t, b, a, 4096)
}

// awaitFlush waits for completions of a QP, whatever they say.
func awaitFlush(t *testing.T, s *side, n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(30*time.Second))
	defer cancel()
	for n > 0 {
		var wcs [16]roce.Completion
		got, err := s.cq.Wait(ctx, wcs[:])
		if err != nil {
			t.Fatalf("%v; %v", err, s.qp.Snapshot())
		}
		n -= got
	}
}

// TestOutageOfAnEndedQP is the same in namespaces, with a QP that is closed.
func TestOutageOfAnEndedQP(t *testing.T) {
	t.Parallel() // it waits most of the time
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	c, d := newSide(t, devs[0]), newSide(t, devs[1])
	connect(t, a, b)
	connectWith(t, c, d, outlasting)
	exchange(t, a, b, 4096)
	setLink(t, pair, vethpair.A, false)
	postWrites(t, a, b, 4, regionSize)
	postWrites(t, c, d, 4, regionSize)
	awaitCount(t, devs[0], "link_downed", 1)
	if err := a.qp.Close(); err != nil {
		t.Error(err)
	}
	awaitCount(t, devs[0], "link_error_recovery", 1)
	setLink(t, pair, vethpair.A, true)
	c.wait(t, 4)
	exchange(t, d, c, 4096)
}

// flapsEnv is how many flaps TestLinkFlaps makes, for the long run.
const flapsEnv = "XROCE_FLAPS"

// TestLinkFlaps takes the interface at either end down and up again and again under traffic. The
// outages are shorter than the retries, so no queue pair fails.
func TestLinkFlaps(t *testing.T) {
	flaps := times(flapsEnv, 10)
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connectWith(t, a, b, outlasting)
	before := openFiles(t)
	const batch = 10
	for n := 0; n < flaps; n += batch {
		postWrites(t, a, b, 8, regionSize)
		postWrites(t, b, a, 8, regionSize)
		for i := range batch {
			side := vethpair.Side(i % 2)
			setLink(t, pair, side, false)
			setLink(t, pair, side, true)
		}
		a.wait(t, 8)
		b.wait(t, 8)
	}
	exchange(t, a, b, regionSize)
	for _, d := range devs {
		t.Logf("%d flaps: link_downed %d, link_error_recovery %d, port_xmit_discards %d, "+
			"retransmits %d", flaps, counterOf(t, d, "link_downed"),
			counterOf(t, d, "link_error_recovery"), counterOf(t, d, "port_xmit_discards"),
			counterOf(t, d, "retransmits"))
	}
	if after := filesLeft(t, before); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
}

// TestGenericIsNeverZeroCopy: where the program runs in generic mode, zero-copy is refused.
func TestGenericIsNeverZeroCopy(t *testing.T) {
	xsktest.NeedRoot(t)
	pair, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer pair.Close()
	err = pair.Do(vethpair.A, func() error {
		d, err := engine.Open(vethpair.IfName, engine.Options{
			Attach: bpf.Generic, Mode: xsk.ModeZeroCopy,
		})
		if err == nil {
			_ = d.Close()
		}
		return err
	})
	if !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "generic mode") {
		t.Errorf("error %v", err)
	}
}
