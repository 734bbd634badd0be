package engine_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim/campaign"
	"xroce/roce"
	"xroce/xsk"
	"xroce/xsk/xsktest"
	"xroce/xsk/xsktest/timeout"
)

// A script says which calls of a kernel fail. It is safe for concurrent use.
type script struct {
	mu    sync.Mutex
	fails map[string][]error // for each call, those to come
	left  int
}

// add has a call fail with errors, one after the other.
func (s *script) add(call string, errs ...error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fails == nil {
		s.fails = map[string][]error{}
	}
	s.fails[call] = append(s.fails[call], errs...)
	s.left += len(errs)
}

// hook is the Hook of the kernel.
func (s *script) hook(call string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.fails[call]
	if len(list) == 0 {
		return nil
	}
	s.fails[call] = list[1:]
	s.left--
	return list[0]
}

// played reports whether all that is in the script has happened.
func (s *script) played() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left == 0
}

// A plainHost is a port whose neighbour is known.
type plainHost struct {
	port engine.Port
	peer [6]byte
}

func (h *plainHost) Port() engine.Port { return h.port }
func (h *plainHost) Close() error      { return nil }

func (h *plainHost) Resolve(context.Context, netip.Addr, netip.Addr) ([6]byte, error) {
	return h.peer, nil
}

// A scripted pair is two devices on sockets over kernels in memory; that of the first follows a
// script.
type scriptedPair struct {
	script
	count   func(call string)    // told of each call, nil for nobody
	watched chan bool            // tells the first device whether its port is up, nil for never
	changed func(xsk.Info) error // why the first is to have another link, nil for never
	kernels [2]*xsktest.Kernel
	devs    [2]*engine.Device
}

// newScripted makes a pair of devices with options.
func newScripted(t *testing.T, opts [2]engine.Options) *scriptedPair {
	t.Helper()
	p := &scriptedPair{}
	p.open(t, opts)
	return p
}

// open opens the devices.
func (p *scriptedPair) open(t *testing.T, opts [2]engine.Options) {
	t.Helper()
	hook := func(call string) error {
		if p.count != nil {
			p.count(call)
		}
		return p.hook(call)
	}
	p.kernels[0], p.kernels[1] = xsktest.NewWire(
		xsktest.KernelOptions{Hook: hook}, xsktest.KernelOptions{})
	for i, k := range p.kernels {
		open := func() (xsk.Link, error) {
			return xsk.Open(xsk.Config{
				Ifindex: 1, Kernel: k, RxFrames: 256, TxFrames: 128, BindTimeout: time.Millisecond,
			})
		}
		link, err := open()
		if err != nil {
			t.Fatal(err)
		}
		var h engine.Host = &plainHost{
			port: engine.Port{
				Name: "fake0", Index: 1, MTU: 1500, Up: true, MAC: [6]byte{2, 5: byte(1 + i)},
				Addrs: []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + i)})},
			},
			peer: [6]byte{2, 5: byte(2 - i)},
		}
		if i == 0 && p.watched != nil {
			h = &watchedHost{h, p.watched}
		}
		changed := func(info xsk.Info) error {
			if i > 0 || p.changed == nil {
				return nil
			}
			return p.changed(info)
		}
		p.devs[i], err = engine.OpenLink(engine.Reopenable(link, open, changed), h, opts[i])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := p.devs[i].Close(); err != nil {
				t.Error(err)
			}
			if left := k.Leaks(); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestKeepaliveOutlastsReset: while our own link is made anew a connection that asks whether its
// peer is there is excused as one that sends.
func TestKeepaliveOutlastsReset(t *testing.T) {
	p := newScripted(t, [2]engine.Options{})
	idle, peer := newSide(t, p.devs[0]), newSide(t, p.devs[1])
	a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
	o := engine.ConnectOptions{SGIDIndex: 1, Timeout: 16} // eight tries take 2.1 s
	connectWith(t, idle, peer, o)
	connectWith(t, a, b, o)
	must(t, idle.qp.Modify(&roce.Attr{Keepalive: 100}, roce.AttrKeepalive))
	exchange(t, idle, peer, 4096)
	var fails []error
	for range 9 {
		fails = append(fails, unix.EIO) // 10 ms to a second is waited: 3.3 s together
	}
	p.add("Socket", fails...)
	p.add("Send", unix.EIO)
	postWrites(t, a, b, 1, 4096)
	a.wait(t, 1)
	if !p.played() {
		t.Error("the socket was not made anew")
	}
	if s := idle.qp.State(); s != roce.StateRTS {
		t.Errorf("the connection that is idle is in %s", s)
	}
	exchange(t, idle, peer, 4096)
}

// carry moves data both ways, by WRITE and by READ, until the script is played, and compares it.
func (p *scriptedPair) carry(t *testing.T, a, b *side) {
	t.Helper()
	const size = 64 << 10
	end := time.Now().Add(timeout.Scaled(20 * time.Second))
	for n := 0; n < 2 || !p.played(); n++ {
		if time.Now().After(end) {
			t.Fatalf("the script does not end: %v", p.fails)
		}
		for _, s := range []*side{a, b} {
			campaign.Pattern(rand.Uint64()).Fill(s.mr.Bytes()[:2*size])
			s.see()
		}
		want := bytes.Clone(a.mr.Bytes()[:size])
		read := bytes.Clone(b.mr.Bytes()[size : 2*size])
		for _, wr := range []roce.SendWR{
			{Opcode: roce.OpWrite, SGList: []roce.SGE{a.mr.SGE(0, size)}, RemoteAddr: b.mr.Addr()},
			{
				Opcode: roce.OpRead, SGList: []roce.SGE{a.mr.SGE(size, size)},
				RemoteAddr: b.mr.Addr() + size,
			},
		} {
			wr.Flags, wr.RKey = roce.SendSignaled, b.mr.RKey()
			if err := a.qp.PostSend(&wr); err != nil {
				t.Fatal(err)
			}
		}
		a.wait(t, 2)
		b.see()
		if !bytes.Equal(b.mr.Bytes()[:size], want) ||
			!bytes.Equal(a.mr.Bytes()[size:2*size], read) {
			t.Fatal("data differs")
		}
	}
}

// errnos are what the kernel may say of a card that is being reset.
var errnos = []error{
	unix.EINVAL, unix.ENXIO, unix.EIO, unix.EBUSY, unix.ENETDOWN, unix.ENOBUFS,
}

// TestResetIsSurvived has the kernel say everything that it may say of a card that is reset, at
// each call: a transfer loses packets and goes on.
func TestResetIsSurvived(t *testing.T) {
	t.Parallel() // it waits most of the time
	for _, call := range []string{"Send", "Poll", "Device", "Bind", "Socket", "RegisterUMEM"} {
		for _, err := range errnos {
			t.Run(fmt.Sprintf("%s %v", call, err), func(t *testing.T) {
				t.Parallel()
				testReset(t, call, err, engine.Options{})
			})
		}
	}
	t.Run("busy", func(t *testing.T) {
		t.Parallel()
		testReset(t, "Bind", unix.EINVAL, engine.Options{Busy: true})
	})
	t.Run("direct", func(t *testing.T) {
		t.Parallel()
		testReset(t, "Bind", unix.EINVAL, engine.Options{Direct: true})
	})
}

// testReset has a call fail. One that is not made in traffic is made when the socket is lost.
func testReset(t *testing.T, call string, err error, o engine.Options) {
	p := newScripted(t, [2]engine.Options{o, {}})
	a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
	connectWith(t, a, b, outlasting)
	p.carry(t, a, b)
	lost := uint64(1)
	switch call {
	case "Send":
		p.add(call, err)
		if err == unix.EBUSY || err == unix.ENETDOWN || err == unix.ENOBUFS {
			lost = 0 // these pass by themselves
		}
	case "Poll":
		if o.Direct || o.Busy {
			t.Skip("nobody sleeps for sure")
		}
		p.add(call, err)
		if err == unix.ENETDOWN {
			lost = 0
		}
	default:
		p.add("Send", unix.EIO)
		p.add(call, err, err, err)
	}
	p.carry(t, a, b)
	awaitCount(t, p.devs[0], "link_error_recovery", lost)
	if err := p.devs[0].Err(); err != nil {
		t.Errorf("the device has ended: %v", err)
	}
}

// TestResetThatEnds: a socket that cannot be made anew because there is no such
// interface is the end of the device; so is one that may not be.
func TestResetThatEnds(t *testing.T) {
	for _, err := range []error{unix.ENODEV, unix.EPERM} {
		p := newScripted(t, [2]engine.Options{})
		a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
		connectWith(t, a, b, outlasting)
		p.add("Socket", err)
		p.add("Send", unix.EIO)
		postWrites(t, a, b, 1, regionSize)
		select {
		case <-p.devs[0].Done():
		case <-time.After(timeout.Scaled(20 * time.Second)):
			t.Fatal("the device lives on")
		}
		if got := p.devs[0].Err(); !errors.Is(got, err) || a.qp.State() != roce.StateErr {
			t.Errorf("ended with %v, QP in %s", got, a.qp.State())
		}
	}
}

// TestQueuesWithoutNotice: a device finds the queues that a card was given without a notification
// by the packets that it misses.
func TestQueuesWithoutNotice(t *testing.T) {
	grown := errors.New("there are more queues")
	p := newScripted(t, [2]engine.Options{})
	p.changed = func(xsk.Info) error { return grown }
	a, b := newSide(t, p.devs[0]), newSide(t, p.devs[1])
	connectWith(t, a, b, outlasting)
	engine.SeeMissed(p.devs[0], 7, 7, 7)
	if n := counterOf(t, p.devs[0], "link_error_recovery"); n != 0 {
		t.Errorf("%d sockets made anew, and no packet was missed since", n)
	}
	engine.SeeMissed(p.devs[0], 7, 8)
	awaitCount(t, p.devs[0], "link_error_recovery", 1)
	p.carry(t, a, b)
}
