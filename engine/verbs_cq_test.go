package engine_test

import (
	"errors"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// TestResizeUnderTraffic changes the room of both CQs while messages fly: every
// completion comes once and in order.
func TestResizeUnderTraffic(t *testing.T) {
	const messages = 500
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	a, b := newSide(t, devA), newSide(t, devB)
	connect(t, a, b)
	stop, begun := make(chan struct{}), make(chan struct{})
	resized := make(chan int)
	go func() {
		n := 0
		for depth := 256; ; depth = 256 + (depth+37)%1000 {
			select {
			case <-stop:
				resized <- n
				return
			default:
			}
			for _, cq := range []*engine.CQ{a.cq, b.cq} {
				if err := cq.Resize(depth); err != nil {
					t.Error(err)
				}
				if cq.Depth() < 256 {
					t.Errorf("depth %d", cq.Depth())
				}
			}
			if n++; n == 1 {
				close(begun)
			}
		}
	}()
	<-begun
	for i := 0; i < messages; {
		for range 50 {
			err := errors.Join(
				b.qp.PostRecv(&roce.RecvWR{WRID: uint64(i), SGList: []roce.SGE{b.mr.SGE(0, 64)}}),
				a.qp.PostSend(&roce.SendWR{
					WRID: uint64(i), Opcode: roce.OpSend, Flags: roce.SendSignaled,
					SGList: []roce.SGE{a.mr.SGE(0, 64)},
				}))
			if err != nil {
				t.Fatal(err)
			}
			i++
		}
		for _, s := range []*side{a, b} {
			for j, wc := range s.wait(t, 50) {
				if wc.WRID != uint64(i-50+j) {
					t.Fatalf("completion of %d, want %d", wc.WRID, i-50+j)
				}
			}
		}
	}
	close(stop)
	if n := <-resized; n == 0 {
		t.Error("nothing was resized meanwhile")
	}
	if err := a.cq.Resize(0); !errors.Is(err, roce.ErrInvalid) {
		t.Errorf("no room at all: %v", err)
	}
}

// TestOverrun loses a completion: the CQ, and with it its QP, is of no more use,
// and events tell both.
func TestOverrun(t *testing.T) {
	inWorlds(t, engine.Options{}, func(t *testing.T, w *world) {
		small, err := w.devs[0].CreateCQ(2)
		if err != nil {
			t.Fatal(err)
		}
		a := seatOn(t, w.devs[0], engine.QPInit{SendCQ: small, RecvCQ: small})
		b := seatOn(t, w.devs[1], engine.QPInit{})
		join(t, a, b, engine.ConnectOptions{})
		for i := range 3 {
			wr := writeTo(a, b, roce.OpWrite, 10)
			wr.WRID = uint64(i)
			a.send(t, wr)
		}
		for _, want := range []engine.AsyncEvent{
			{Type: roce.EventCQErr, CQ: small}, {Type: roce.EventQPFatal, QP: a.qp},
		} {
			if e := w.event(w.devs[0]); e != want {
				t.Errorf("event %s, want %s", e.Type, want.Type)
			}
		}
		if state := a.qp.State(); state != roce.StateErr {
			t.Errorf("the QP is in %s", state)
		}
		wcs := make([]roce.Completion, 3)
		n, err := small.Poll(wcs)
		if n != 2 || err != nil || wcs[0].WRID != 0 || wcs[1].WRID != 1 {
			t.Errorf("%d completions (%v): %+v", n, err, wcs[:n])
		}
		if _, err := small.Poll(wcs); !errors.Is(err, roce.ErrOverrun) {
			t.Errorf("polling an overrun CQ: %v", err)
		}
		if n := counterOf(t, w.devs[0], "cq_overrun"); n == 0 {
			t.Error("nothing was counted")
		}
	})
}

// TestModerationOnTheVirtualClock has an armed CQ make its event with the last of
// count completions, or exactly a period after the first one.
func TestModerationOnTheVirtualClock(t *testing.T) {
	const period = 500 * time.Microsecond
	w := simWorld(t, 2, sim.Faults{Delay: roce.Microsecond}, engine.Options{})
	a, b := seatOn(t, w.devs[0], engine.QPInit{}), seatOn(t, w.devs[1], engine.QPInit{})
	join(t, a, b, engine.ConnectOptions{})
	if err := b.cq.Modify(4, period); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		messages int
		from     int       // this completion
		after    roce.Time // to the event
	}{
		{1, 0, roce.Time(period)}, {3, 0, roce.Time(period)}, {4, 3, 0}, {1, 0, roce.Time(period)},
	} {
		b.cq.Arm(false)
		for range tt.messages {
			b.recv(t, 0, 0, 100)
			a.send(t, writeTo(a, b, roce.OpSend, 100))
		}
		w.run(func() bool {
			select {
			case <-b.cq.Events():
				return true
			default:
				return false
			}
		})
		at := w.clock.Now()
		wcs := w.succeed(b.cq, tt.messages)
		if after := at - wcs[tt.from].Time; after != tt.after {
			t.Errorf("%d messages: the event came after %d ns, want %d", tt.messages, after,
				tt.after)
		}
		w.succeed(a.cq, tt.messages)
	}
	for _, bad := range []struct {
		count  int
		period time.Duration
	}{{-1, 0}, {1 << 16, 0}, {2, -1}} {
		if err := b.cq.Modify(bad.count, bad.period); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("%d completions, %s: %v", bad.count, bad.period, err)
		}
	}
}

// moderated makes two connected sides on the machine's clock, the second with its
// CQ on a completion channel, armed, and with one completion whose event is held
// back for an hour.
func moderated(t *testing.T) (b *side, channel *engine.CompChannel) {
	t.Helper()
	clock := engine.NewSystemClock()
	devA, devB := simPair(t, newNetwork(t, 1, clock, sim.Faults{}), engine.Options{Clock: clock})
	channel = newChannel(t, devB)
	a, b := newSide(t, devA), newSideOn(t, devB, channel)
	connect(t, a, b)
	if err := b.cq.Modify(1000, time.Hour); err != nil {
		t.Fatal(err)
	}
	b.cq.Arm(false)
	sendOne(t, a, b, 0)
	var wcs [2]roce.Completion
	if n, err := b.cq.Poll(wcs[:]); n != 1 || err != nil {
		t.Fatalf("%d completions came with the acknowledgement (%v)", n, err)
	}
	if readable(t, channel.FD(), 0) {
		t.Fatal("the event was not held back")
	}
	return b, channel
}

var soon = timeout.Scaled(20 * time.Second)

// TestModerationWakesAPoller has poll(2) return when the period is over, and when
// moderation changes while the device sleeps.
func TestModerationWakesAPoller(t *testing.T) {
	b, channel := moderated(t)
	if err := b.cq.Modify(1000, 30*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if !readable(t, channel.FD(), soon) {
		t.Fatal("no event after the period became short")
	}
	if cq := channel.PollEvent(); cq != b.cq {
		t.Error("the event is of another CQ")
	}
	if err := b.cq.AckEvents(1); err != nil {
		t.Error(err)
	}
}

// TestModerationEnds makes the event that was held back.
func TestModerationEnds(t *testing.T) {
	b, channel := moderated(t)
	if err := b.cq.Modify(0, 0); err != nil {
		t.Fatal(err)
	}
	if !readable(t, channel.FD(), 0) {
		t.Error("no event")
	}
}

// TestModerationEndsWithTheDevice makes the event that was held back when the link
// fails, for nobody looks at the clock any more.
func TestModerationEndsWithTheDevice(t *testing.T) {
	network := newNetwork(t, 1, engine.NewSystemClock(), sim.Faults{})
	port := newPort(t, network, 0)
	link := &failingLink{Port: port, fail: make(chan struct{})}
	dev, err := engine.OpenLink(link, port, engine.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dev.Close(); err != nil {
			t.Error(err)
		}
	}()
	channel := newChannel(t, dev)
	s := newSideOn(t, dev, channel)
	if err := s.qp.PostRecv(&roce.RecvWR{}); err != nil {
		t.Fatal(err)
	}
	if err := s.cq.Modify(1000, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.cq.Arm(false)
	close(link.fail)
	link.Wake()
	if !readable(t, channel.FD(), soon) {
		t.Error("no event of the flushed receive")
	}
	if err := s.cq.Modify(1000, time.Hour); err == nil {
		t.Error("moderation on a device that failed")
	}
}

// A failingLink fails for good when it is told to.
type failingLink struct {
	*sim.Port
	fail chan struct{}
}

func (f *failingLink) Wait(timeout time.Duration) error {
	select {
	case <-f.fail:
		return errors.New("the test ends the link")
	default:
		return f.Port.Wait(timeout)
	}
}
