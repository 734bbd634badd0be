package engine_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/vethpair"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/leaktest"
	"xroce/xsk/xsktest/timeout"
)

// processes are what the test binary is instead of tests, by the variable of the environment that
// says so, the value of which they get. They return the exit status.
var processes = map[string]func(value string) int{}

func TestMain(m *testing.M) {
	for name, run := range processes {
		if value := os.Getenv(name); value != "" {
			os.Exit(run(value))
		}
	}
	leaktest.Main(m)
}

// setLink brings one end of a pair up or down.
func setLink(t *testing.T, pair *vethpair.Pair, side vethpair.Side, up bool) {
	t.Helper()
	err := pair.Do(side, func() error {
		link, err := netlink.LinkByName(vethpair.IfName)
		if err != nil {
			return err
		}
		if up {
			return netlink.LinkSetUp(link)
		}
		return netlink.LinkSetDown(link)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// postWrites posts n WRITEs of size bytes.
func postWrites(t *testing.T, a, b *side, n, size int) {
	t.Helper()
	b.see() // what the test did there before
	postUnseen(t, a, b, n, size)
}

// postUnseen is postWrites for who may not take the lock of b.
func postUnseen(t *testing.T, a, b *side, n, size int) {
	t.Helper()
	for i := range n {
		err := a.qp.PostSend(&roce.SendWR{
			WRID: uint64(i), Opcode: roce.OpWrite, Flags: roce.SendSignaled,
			SGList: []roce.SGE{a.mr.SGE(0, size)}, RemoteAddr: b.mr.Addr(), RKey: b.mr.RKey(),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestLinkFlapsUnderTraffic takes each end down while a transfer runs. What is
// reported complete must have arrived, and everything must complete.
func TestLinkFlapsUnderTraffic(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{MTU: 4200}, [2]engine.Options{})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connect(t, a, b)
	for i := range a.mr.Bytes() {
		a.mr.Bytes()[i] = byte(i * 7)
	}
	for _, side := range []vethpair.Side{vethpair.A, vethpair.B} {
		// A test that is not scheduled takes the link down too late, and tries again.
		for tries := 1; !flapsUnderTraffic(t, pair, a, b, side); tries++ {
			if tries == 50 {
				t.Fatalf("the transfer was over before the link went down, %d times", tries)
			}
		}
	}
}

// flapsUnderTraffic takes one end down and up while a transfer runs, and compares the data. It
// reports whether the transfer had not ended before.
func flapsUnderTraffic(t *testing.T, pair *vethpair.Pair, a, b *side, end vethpair.Side) bool {
	t.Helper()
	clear(b.mr.Bytes())
	b.see()
	postWrites(t, a, b, 60, regionSize)
	setLink(t, pair, end, false)
	running := a.qp.Snapshot().SendPosted > 0
	setLink(t, pair, end, true)
	a.wait(t, 60)
	b.see()
	if !bytes.Equal(a.mr.Bytes(), b.mr.Bytes()) {
		t.Fatalf("data differs after end %s flapped", end)
	}
	return running
}

// TestPortEvents follows the port down and up, from either end, and not twice.
func TestPortEvents(t *testing.T) {
	t.Parallel() // it waits most of the time
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	expect := func(want roce.Event) {
		t.Helper()
		select {
		case e := <-portEvents(devs[0]):
			if e != (engine.AsyncEvent{Type: want}) {
				t.Fatalf("%+v, want %s", e, want)
			}
		case <-time.After(timeout.Scaled(20 * time.Second)):
			t.Fatalf("no event, want %s", want)
		}
	}
	for _, side := range []vethpair.Side{vethpair.A, vethpair.B, vethpair.A} {
		setLink(t, pair, side, false)
		expect(roce.EventPortErr)
		setLink(t, pair, side, true)
		expect(roce.EventPortActive)
	}
}

// portEvents receives one event that is not EventGIDChange: the kernel takes the
// IPv6 addresses of an interface that goes down away.
func portEvents(d *engine.Device) <-chan engine.AsyncEvent {
	one := make(chan engine.AsyncEvent, 1)
	go func() {
		for e := range d.Events() {
			if e.Type != roce.EventGIDChange {
				one <- e
				return
			}
		}
	}()
	return one
}

// TestDeviceDeleted ends all work with errors when the interface goes away.
func TestDeviceDeleted(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connect(t, a, b)
	postWrites(t, a, b, 60, regionSize)
	// One that has to wait is there however late the interface goes: a SEND without receive.
	err := a.qp.PostSend(&roce.SendWR{WRID: 60, Opcode: roce.OpSend, Flags: roce.SendSignaled})
	if err != nil {
		t.Fatal(err)
	}
	err = pair.Do(vethpair.A, func() error {
		link, err := netlink.LinkByName(vethpair.IfName)
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	flushed := 0
	for flushed == 0 {
		var wcs [60]roce.Completion
		n, err := a.cq.Wait(ctx, wcs[:])
		if err != nil {
			t.Fatalf("no flush: %v; %v", err, a.qp.Snapshot())
		}
		for _, wc := range wcs[:n] {
			if wc.Status == roce.StatusWRFlushErr {
				flushed++
			}
		}
	}
	for e := range devs[0].Events() { // PORT_ERR may come before
		if e.Type == roce.EventDeviceFatal {
			break
		}
	}
	if devs[0].Err() == nil || a.qp.State() != roce.StateErr {
		t.Errorf("device error %v, QP %s", devs[0].Err(), a.qp.State())
	}
}

// TestRemovalEndsIdleDevice deletes the interface of a device that nobody polls: it ends
// all the same, and says why.
func TestRemovalEndsIdleDevice(t *testing.T) {
	pair, devs := vethPair(t, vethpair.Options{}, [2]engine.Options{{Direct: true}, {}})
	err := pair.Do(vethpair.A, func() error {
		link, err := netlink.LinkByName(vethpair.IfName)
		if err != nil {
			return err
		}
		return netlink.LinkDel(link)
	})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range devs { // deleting one end of a veth deletes the other
		select {
		case <-d.Done():
		case <-time.After(timeout.Scaled(20 * time.Second)):
			t.Fatalf("device %d lives on without its interface", i)
		}
		err := d.Err()
		if !errors.Is(err, unix.ENODEV) || !strings.Contains(err.Error(), "xr0 was removed") {
			t.Errorf("device %d ended with: %v", i, err)
		}
	}
	if err := devs[0].Close(); err != nil {
		t.Error(err)
	}
	if err := devs[0].Err(); !errors.Is(err, unix.ENODEV) {
		t.Errorf("closing hides why the device ended: %v", err)
	}
}

// TestPeerKilled ends with RETRY_EXC_ERR on the oldest request and flushes for
// the others when the peer's device is closed in the middle of a transfer.
func TestPeerKilled(t *testing.T) {
	clock := &sim.VirtualClock{}
	network := newNetwork(t, 1, clock, sim.Faults{Delay: roce.Microsecond})
	devA, devB := simPair(t, network, engine.Options{Clock: clock, Direct: true})
	a, b := newSide(t, devA), newSide(t, devB)
	connectWith(t, a, b, engine.ConnectOptions{SGIDIndex: 1, Timeout: 14})
	postWrites(t, a, b, 10, regionSize)
	var wcs []roce.Completion
	poll := func() {
		var some [16]roce.Completion
		n, err := a.cq.Poll(some[:])
		if err != nil {
			t.Error(err)
		}
		wcs = append(wcs, some[:n]...)
	}
	err := network.Run(clock, roce.Second, func() bool { poll(); return len(wcs) >= 3 }, devA, devB)
	if err != nil {
		t.Fatal(err)
	}
	if err := devB.Close(); err != nil {
		t.Fatal(err)
	}
	killed := clock.Now()
	err = network.Run(clock, 100*roce.Second, func() bool { poll(); return len(wcs) == 10 }, devA)
	if err != nil {
		t.Fatalf("%v; %v", err, a.qp.Snapshot())
	}
	failed := 0
	for i, wc := range wcs {
		switch {
		case wc.WRID != uint64(i):
			t.Errorf("completion %d is of request %d", i, wc.WRID)
		case wc.Status == roce.StatusRetryExcErr:
			failed++
		case wc.Status != roce.StatusSuccess && failed == 0,
			wc.Status != roce.StatusWRFlushErr && failed > 0:
			t.Errorf("completion %d: %s", i, wc.Status)
		}
	}
	if failed != 1 {
		t.Errorf("%d requests ran out of retries, want 1", failed)
	}
	// Eight sends of 67 ms each, and not much more.
	if took := clock.Now() - killed; took < 8*67*roce.Millisecond || took > roce.Second {
		t.Errorf("noticed after %d ms", took/roce.Millisecond)
	}
}

// TestOpenAndClose leaves no file descriptor behind, with work outstanding.
func TestOpenAndClose(t *testing.T) {
	xsktest.NeedRoot(t)
	fresh, err := vethpair.New(vethpair.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := fresh.Close(); err != nil {
			t.Error(err)
		}
	}()
	cycle := func() {
		var devs [2]*engine.Device
		for i, side := range []vethpair.Side{vethpair.A, vethpair.B} {
			err := fresh.Do(side, func() (err error) {
				devs[i], err = engine.Open(vethpair.IfName, engine.Options{})
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		a, b := newSide(t, devs[0]), newSide(t, devs[1])
		connect(t, a, b)
		postWrites(t, a, b, 50, regionSize)
		for _, d := range devs {
			if err := errors.Join(d.Close(), d.Close()); err != nil {
				t.Error(err)
			}
		}
	}
	cycle()
	before := openFiles(t)
	for range times(opensEnv, 5) {
		cycle()
	}
	if after := filesLeft(t, before); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
}

// opensEnv is how often TestOpenAndClose opens a device, for the long run.
const opensEnv = "XROCE_OPENS"

// times is the number in a variable of the environment, for a long run, or what it is else.
func times(env string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(env)); err == nil {
		return n
	}
	return usual
}

// openFiles counts them. Go opens two for its poller when something first needs that, a
// pipe for example: they are counted each time.
func openFiles(t *testing.T) int {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	w.Close()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

// filesLeft counts file descriptors, and gives those that a device has for a moment, to ask the
// host, the time to be closed, up to a limit that only one that stays reaches.
func filesLeft(t *testing.T, want int) int {
	t.Helper()
	limit := time.Now().Add(timeout.Scaled(10 * time.Second))
	for openFiles(t) > want && time.Now().Before(limit) {
		time.Sleep(time.Millisecond) // not to be right, but to leave others the CPU
	}
	return openFiles(t)
}

// TestDirectMode drives each device from the goroutine that polls it.
func TestDirectMode(t *testing.T) {
	_, devs := vethPair(t, vethpair.Options{},
		[2]engine.Options{{Direct: true}, {Direct: true}})
	a, b := newSide(t, devs[0]), newSide(t, devs[1])
	connect(t, a, b)
	const rounds = 200
	over, end := context.WithCancel(t.Context())
	defer end()
	var wg sync.WaitGroup
	for _, s := range []struct {
		*side
		first bool
	}{{a, true}, {b, false}} {
		wg.Go(func() {
			pingPong(t, s.side, s.first, rounds)
			if s.first {
				end()
			}
			// In direct mode nobody else sends the last SEND, which the first waits for.
			var wcs [1]roce.Completion
			_, _ = s.cq.Wait(over, wcs[:])
		})
	}
	wg.Wait()
}

// pingPong plays one end of a ping-pong of SENDs.
func pingPong(t *testing.T, s *side, first bool, rounds int) {
	receive := &roce.RecvWR{SGList: []roce.SGE{s.mr.SGE(0, 64)}}
	send := &roce.SendWR{Opcode: roce.OpSend, SGList: []roce.SGE{s.mr.SGE(64, 64)}}
	if err := s.qp.PostRecv(receive); err != nil {
		t.Error(err)
		return
	}
	if first {
		if err := s.qp.PostSend(send); err != nil {
			t.Error(err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	for i := range rounds {
		var wcs [1]roce.Completion
		if _, err := s.cq.Wait(ctx, wcs[:]); err != nil || wcs[0].Status != roce.StatusSuccess {
			t.Errorf("round %d: %v, %s", i, err, wcs[0].Status)
			return
		}
		if err := s.qp.PostRecv(receive); err != nil {
			t.Error(err)
			return
		}
		if first && i == rounds-1 {
			return
		}
		if err := s.qp.PostSend(send); err != nil {
			t.Error(err)
			return
		}
	}
}
