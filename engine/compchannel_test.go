package engine_test

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// newSideOn makes a side whose CQ is on a completion channel.
func newSideOn(t *testing.T, dev *engine.Device, channel *engine.CompChannel) *side {
	t.Helper()
	s := newSide(t, dev)
	s.qp.Close()
	cq, err := dev.CreateCQ(1024, engine.OnChannel(channel))
	if err != nil {
		t.Fatal(err)
	}
	s.cq = cq
	if s.qp, err = dev.CreateQP(s.pd, engine.QPInit{SendCQ: cq, RecvCQ: cq}); err != nil {
		t.Fatal(err)
	}
	err = s.qp.Modify(&roce.Attr{State: roce.StateInit, Port: 1, Access: allAccess},
		roce.AttrState|roce.AttrPort|roce.AttrPKeyIndex|roce.AttrAccess)
	if err != nil {
		t.Fatal(err)
	}
	if s.end, err = dev.Endpoint(s.qp, 1); err != nil {
		t.Fatal(err)
	}
	return s
}

func newChannel(t *testing.T, dev *engine.Device) *engine.CompChannel {
	t.Helper()
	c, err := dev.CreateCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// readable polls a descriptor for so long.
func readable(t *testing.T, fd int, timeout time.Duration) bool {
	t.Helper()
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}},
			int(timeout.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return n == 1
	}
}

// sendOne sends a message from a to b, solicited or not, to its end.
func sendOne(t *testing.T, a, b *side, flags roce.SendFlags) {
	t.Helper()
	if err := b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 64)}}); err != nil {
		t.Fatal(err)
	}
	err := a.qp.PostSend(&roce.SendWR{
		Opcode: roce.OpSend, Flags: roce.SendSignaled | flags,
		SGList: []roce.SGE{a.mr.SGE(0, 64)},
	})
	if err != nil {
		t.Fatal(err)
	}
	a.wait(t, 1)
}

// drain polls until there is nothing.
func drain(t *testing.T, cq *engine.CQ) (n int) {
	t.Helper()
	for {
		var wcs [16]roce.Completion
		got, err := cq.Poll(wcs[:])
		if err != nil {
			t.Fatal(err)
		}
		if n += got; got == 0 {
			return n
		}
	}
}

// TestCompChannel goes through what ibv_comp_channel promises, one by one.
func TestCompChannel(t *testing.T) {
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	channel := newChannel(t, devB)
	a, b := newSide(t, devA), newSideOn(t, devB, channel)
	connect(t, a, b)
	event := func(want bool) {
		t.Helper()
		if got := readable(t, channel.FD(), 0); got != want {
			t.Fatalf("readable: %t", got)
		}
		cq := channel.PollEvent()
		if (cq != nil) != want || (want && cq != b.cq) {
			t.Fatalf("an event of %p, wanted: %t", cq, want)
		}
		if want {
			if err := cq.AckEvents(1); err != nil {
				t.Fatal(err)
			}
		}
	}
	sendOne(t, a, b, 0)
	event(false) // not armed
	if !b.cq.Arm(false) {
		t.Error("the CQ is not empty, and Arm does not say so")
	}
	event(false) // what was there makes no event
	sendOne(t, a, b, 0)
	sendOne(t, a, b, 0)
	event(true) // one for the Arm, not one for each completion
	event(false)
	if n := drain(t, b.cq); n != 3 {
		t.Errorf("%d completions", n)
	}
	b.cq.Arm(true)
	sendOne(t, a, b, 0)
	event(false) // not solicited
	sendOne(t, a, b, roce.SendSolicited)
	event(true)
	for range 3 { // answered and not taken
		b.cq.Arm(false)
		sendOne(t, a, b, 0)
	}
	event(true)
	event(true)
	event(true)
	event(false)
	if err := b.cq.AckEvents(1); err == nil {
		t.Error("acknowledged more than was taken")
	}
	if err := a.cq.AckEvents(0); err == nil {
		t.Error("acknowledged on no channel")
	}
}

// TestCompChannelHammer arms, waits and polls while completions come from other
// threads: a lost wake-up ends in the time-out.
func TestCompChannelHammer(t *testing.T) {
	const pairs, messages = 3, 300
	for _, adapter := range []bool{false, true} {
		clock := engine.NewSystemClock()
		network := newNetwork(t, 1, clock, sim.Faults{})
		devA, devB := simPair(t, network, engine.Options{Clock: clock})
		channel := newChannel(t, devB)
		ends := map[*engine.CQ]*side{}
		var senders []*side
		for range pairs {
			a, b := newSide(t, devA), newSideOn(t, devB, channel)
			connect(t, a, b)
			for range 64 {
				err := b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 64)}})
				if err != nil {
					t.Fatal(err)
				}
			}
			b.cq.Arm(false)
			ends[b.cq] = b
			senders = append(senders, a)
		}
		var sending sync.WaitGroup
		for _, a := range senders {
			sending.Go(func() {
				for range messages {
					err := a.qp.PostSend(&roce.SendWR{
						Opcode: roce.OpSend, Flags: roce.SendSignaled,
						SGList: []roce.SGE{a.mr.SGE(0, 64)},
					})
					if err != nil {
						t.Error(err)
					}
					var wcs [1]roce.Completion
					if _, err := a.cq.Wait(t.Context(), wcs[:]); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
		for left := pairs * messages; left > 0; {
			cq := nextCQ(ctx, t, channel, adapter)
			cq.Arm(false)
			n := drain(t, cq)
			for range n {
				b := ends[cq]
				err := b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 64)}})
				if err != nil {
					t.Fatal(err)
				}
			}
			left -= n
		}
		sending.Wait()
		cancel()
	}
}

// nextCQ waits for an event in one way or the other.
func nextCQ(ctx context.Context, t *testing.T, c *engine.CompChannel, adapter bool) *engine.CQ {
	t.Helper()
	if adapter {
		select {
		case cq := <-c.Events():
			return cq
		case <-ctx.Done():
			t.Fatal("no event came")
		}
	}
	cq, err := c.GetEvent(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if err := cq.AckEvents(1); err != nil {
		t.Fatal(err)
	}
	return cq
}

// TestCloseOrder closes CQs and channels while others use them.
func TestCloseOrder(t *testing.T) {
	before := openFiles(t)
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	channel, other := newChannel(t, devB), newChannel(t, devB)
	a, b := newSide(t, devA), newSideOn(t, devB, channel)
	connect(t, a, b)
	if err := b.cq.Close(); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a CQ with a QP: %v", err)
	}
	if err := channel.Close(); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a channel with a CQ: %v", err)
	}
	for range 3 { // one taken and not acknowledged, two not taken
		b.cq.Arm(false)
		sendOne(t, a, b, 0)
	}
	if channel.PollEvent() != b.cq {
		t.Fatal("no event")
	}
	b.qp.Close()
	closed, acked := make(chan error), atomic.Bool{}
	go func() {
		err := b.cq.Close()
		for errors.Is(err, engine.ErrBusy) { // by a QP that is made below
			runtime.Gosched()
			err = b.cq.Close()
		}
		if !acked.Load() {
			err = errors.Join(err, errors.New("closed with an event outstanding"))
		}
		closed <- err
	}()
	// A QP can be made until Close has begun; then give it every chance to end.
	for i := 0; i < 1000; i++ {
		qp, err := devB.CreateQP(b.pd, engine.QPInit{SendCQ: b.cq, RecvCQ: b.cq})
		if err == nil {
			qp.Close()
			i = 0
		}
		runtime.Gosched()
	}
	for channel.PollEvent() != nil { // until Close has dropped the others
		if err := b.cq.AckEvents(1); err != nil {
			t.Fatal(err)
		}
	}
	acked.Store(true)
	if err := b.cq.AckEvents(1); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(<-closed, b.cq.Close(), channel.Close(), channel.Close()); err != nil {
		t.Error(err)
	}
	if _, err := devB.CreateQP(b.pd, engine.QPInit{SendCQ: b.cq, RecvCQ: b.cq}); err == nil {
		t.Error("a QP on a closed CQ")
	}
	for name, c := range map[string]*engine.CompChannel{
		"closed": channel, "of another device": newChannel(t, devA),
	} {
		if _, err := devB.CreateCQ(1, engine.OnChannel(c)); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("a CQ on a channel that is %s: %v", name, err)
		}
	}
	// The device closes what is left, with somebody waiting.
	waiting := make(chan error)
	go func() {
		_, err := other.GetEvent(t.Context())
		waiting <- err
	}()
	other.Events()
	if err := errors.Join(devA.Close(), devB.Close()); err != nil {
		t.Error(err)
	}
	if err := <-waiting; err == nil {
		t.Error("an event of a closed device")
	}
	if _, err := devB.CreateCompChannel(); err == nil {
		t.Error("a channel of a closed device")
	}
	if after := filesLeft(t, before); after > before {
		t.Errorf("%d file descriptors before, %d after", before, after)
	}
}

// TestGetEventDrives has nobody else move the packets.
func TestGetEventDrives(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	dev := openPort(t, network, 0, engine.Options{Clock: clock, Direct: true})
	channel := newChannel(t, dev)
	a, b := newSide(t, dev), newSideOn(t, dev, channel)
	connect(t, a, b)
	b.cq.Arm(false)
	if err := b.qp.PostRecv(&roce.RecvWR{SGList: []roce.SGE{b.mr.SGE(0, 64)}}); err != nil {
		t.Fatal(err)
	}
	if err := a.qp.PostSend(&roce.SendWR{Opcode: roce.OpSend}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(20*time.Second))
	defer cancel()
	if cq, err := channel.GetEvent(ctx); cq != b.cq || err != nil {
		t.Fatalf("%p, %v", cq, err)
	}
	canceled, stop := context.WithCancel(ctx)
	stop()
	if _, err := channel.GetEvent(canceled); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}

// TestEventsOfTheDevice loses the link.
func TestEventsOfTheDevice(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	port := newPort(t, network, 0)
	dev, err := engine.OpenLink(port, port, engine.Options{Clock: clock})
	if err != nil {
		t.Fatal(err)
	}
	other := openPort(t, network, 1, engine.Options{Clock: clock})
	a, b := newSide(t, dev), newSide(t, other)
	connect(t, a, b)
	if err := port.Close(); err != nil {
		t.Fatal(err)
	}
	postWrites(t, a, b, 1, 64) // the send finds the port closed
	if e := <-dev.Events(); e != (engine.AsyncEvent{Type: roce.EventDeviceFatal}) {
		t.Errorf("%+v", e)
	}
	if err := dev.Close(); err != nil {
		t.Error(err)
	}
	if e, ok := <-dev.Events(); ok {
		t.Errorf("Close raised %s", e.Type)
	}
}

// TestRefusedQPs leave nothing: their CQ can be closed, and ending all QPs meets
// none of them.
func TestRefusedQPs(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	dev := openPort(t, network, 0, engine.Options{Clock: clock})
	pd, other := dev.AllocPD(), openPort(t, network, 1, engine.Options{Clock: clock})
	cq, err := dev.CreateCQ(8)
	if err != nil {
		t.Fatal(err)
	}
	for i, change := range []func(*engine.QPInit){
		func(i *engine.QPInit) { i.Type = 99 },
		func(i *engine.QPInit) { i.MaxSendWR = -1 },
		func(i *engine.QPInit) { i.MaxRecvWR = 1 << 30 },
		func(i *engine.QPInit) { i.MaxSendSGE = 1 << 20 },
		func(i *engine.QPInit) { i.MaxRecvSGE = -1 },
		func(i *engine.QPInit) { i.Window = -1 },
		func(i *engine.QPInit) { i.SendCQ = nil },
	} {
		init := engine.QPInit{SendCQ: cq, RecvCQ: cq}
		change(&init)
		if _, err := dev.CreateQP(pd, init); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("case %d: error %v", i, err)
		}
	}
	if _, err := other.CreateQP(pd, engine.QPInit{SendCQ: cq, RecvCQ: cq}); err == nil {
		t.Error("a QP in the domain of another device")
	}
	if err := errors.Join(cq.Close(), dev.Close()); err != nil {
		t.Error(err)
	}
}
