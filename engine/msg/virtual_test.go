package msg_test

import (
	"context"
	"errors"
	"math"
	"net/netip"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/msg"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// A virtual is two endpoints under a clock that a test moves.
type virtual struct {
	t        *testing.T
	clock    *sim.VirtualClock
	looks    atomic.Uint64 // of the devices and endpoints at it
	network  *sim.Network
	devices  [2]*engine.Device
	ends     [2]*msg.Endpoint
	managers [2]*cm.Manager
	addrs    [2]netip.Addr
}

func newVirtual(t *testing.T) *virtual {
	t.Helper()
	v := &virtual{t: t, clock: &sim.VirtualClock{}}
	var err error
	v.network, err = sim.NewNetwork(1, v.clock, sim.Faults{Delay: roce.Microsecond})
	must(t, err)
	for i := range v.ends {
		v.addrs[i] = netip.AddrFrom4([4]byte{192, 0, 2, byte(1 + i)})
		port, err := v.network.NewPort(sim.PortConfig{
			MAC: [6]byte{2, 0, 0, 0, 0, byte(1 + i)}, MTU: 4200, Addrs: v.addrs[i : i+1],
		})
		must(t, err)
		v.devices[i], err = engine.OpenLink(port, port,
			engine.Options{Clock: countedClock{v.clock, &v.looks}, Direct: true})
		must(t, err)
		t.Cleanup(func() { must(t, v.devices[i].Close()) })
		v.managers[i], err = cm.Open(v.devices[i], quick)
		must(t, err)
		t.Cleanup(func() { v.run(v.managers[i].Close, roce.Millisecond) })
		v.ends[i], err = msg.Open(v.devices[i], v.managers[i], msg.Options{Spin: -1})
		must(t, err)
		t.Cleanup(func() { v.run(v.ends[i].Close, roce.Millisecond) })
	}
	return v
}

// A countedClock counts who looks at it.
type countedClock struct {
	engine.Clock
	looks *atomic.Uint64
}

func (c countedClock) Now() roce.Time {
	c.looks.Add(1)
	return c.Clock.Now()
}

// connect connects the first end with the second.
func (v *virtual) connect(ctx context.Context) (conns [2]*msg.Conn) {
	v.t.Helper()
	at := netip.AddrPortFrom(v.addrs[1], 7471)
	l, err := v.ends[1].Listen(at)
	must(v.t, err)
	defer l.Close()
	accepted := make(chan error, 1)
	go func() {
		var err error
		conns[1], err = l.Accept(ctx)
		accepted <- err
	}()
	v.wait(func() (err error) {
		conns[0], err = v.ends[0].Dial(ctx, at)
		return errors.Join(err, <-accepted)
	})
	return conns
}

// wait moves the clock until a function, on a goroutine of its own, has returned: so slowly that
// the goroutine has its turn before something it takes part in is over time.
func (v *virtual) wait(f func() error) {
	v.t.Helper()
	v.run(f, 10*roce.Microsecond)
}

// run moves the clock in steps until a function has returned. Short ones take long where half a
// second of time-wait has to pass.
func (v *virtual) run(f func() error, step roce.Time) {
	v.t.Helper()
	result := make(chan error, 1)
	go func() { result <- f() }()
	ctx, cancel := context.WithTimeout(context.Background(), timeout.Scaled(60*time.Second))
	defer cancel()
	for ctx.Err() == nil {
		select {
		case err := <-result:
			must(v.t, err)
			return
		default:
		}
		next := v.clock.Now() + step
		never := func() bool { return false }
		_ = v.network.Run(v.clock, next, never, v.devices[0], v.devices[1])
		v.clock.AdvanceTo(next)
		runtime.Gosched()
	}
	v.t.Fatal("it never ends")
}

// TestHungUpUnderVirtualTime: the peer hangs up while completions wait. Where a poll runs services,
// because the clock does not move by itself, that is noticed all the same.
func TestHungUpUnderVirtualTime(t *testing.T) {
	for range 20 {
		v := newVirtual(t)
		ctx := within(t)
		conns := v.connect(ctx)
		for range 20 {
			must(t, conns[0].PostSend(&msg.Send{Buffers: [][]byte{make([]byte, 100)}}))
		}
		ended, cancel := context.WithCancel(ctx)
		cancel()
		v.wait(func() error {
			if err := conns[1].Close(ended); !errors.Is(err, context.Canceled) {
				return err
			}
			<-conns[0].Done()
			return nil
		})
		if conns[0].Err() == nil {
			t.Error("it is not over")
		}
	}
}

// TestShortMessageLooksAtNoClock: a message that leaves at once, alone, is posted without a look at
// the clock, which would be a good part of what it costs. One that has to wait notes since when.
func TestShortMessageLooksAtNoClock(t *testing.T) {
	v := newVirtual(t)
	ctx := within(t)
	conns := v.connect(ctx)
	s := &msg.Send{Buffers: [][]byte{make([]byte, 64)}}
	r := &msg.Receive{Buffers: [][]byte{make([]byte, 64)}}
	v.wait(func() error { // there are slots
		return errors.Join(conns[0].Send(ctx, []byte{1}), conns[0].Flush(ctx))
	})
	must(t, v.ends[1].PostReceive(r))
	v.wait(func() error { return r.Wait(ctx) })
	for _, c := range []struct{ length, looks int }{{64, 0}, {5000, 1}, {64, 0}} {
		s.Buffers[0], r.Buffers[0] = make([]byte, c.length), make([]byte, c.length)
		must(t, v.ends[1].PostReceive(r))
		least := uint64(math.MaxUint64) // others look, too, now and then
		for try := range 3 {
			if try > 0 {
				must(t, v.ends[1].PostReceive(r))
			}
			before := v.looks.Load()
			must(t, conns[0].PostSend(s))
			least = min(least, v.looks.Load()-before)
			v.wait(func() error {
				return errors.Join(r.Wait(ctx), s.Wait(ctx), conns[0].Flush(ctx))
			})
		}
		if min(least, 1) != uint64(c.looks) {
			t.Errorf("%d bytes: %d looks at the clock", c.length, least)
		}
	}
}
