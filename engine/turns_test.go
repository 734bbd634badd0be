package engine_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"xroce/engine"
	"xroce/engine/sim"
	"xroce/roce"
	"xroce/xsk/xsktest/timeout"
)

// patience ends what hangs.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), timeout.Scaled(30*time.Second))
	t.Cleanup(cancel)
	return ctx
}

// TestPosterSendsBesideASleeper: what is posted leaves at once though the driver sleeps and does
// not wake, a few times in a row; of a burst the rest is the driver's.
func TestPosterSendsBesideASleeper(t *testing.T) {
	clock := engine.NewSystemClock()
	network := newNetwork(t, 1, clock, sim.Faults{})
	a := openPort(t, network, 0, engine.Options{Clock: clock})
	port := newPort(t, network, 1)
	link := &heavySleeper{port, make(chan struct{}, 1), make(chan struct{})}
	b, err := engine.OpenLink(link, port, engine.Options{Clock: clock, Spin: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	from, to := seatOn(t, b, engine.QPInit{MaxInline: 64}), seatOn(t, a, engine.QPInit{})
	join(t, from, to, engine.ConnectOptions{})
	for i := range 6 {
		to.recv(t, uint64(i), 64*i, 64)
	}
	<-link.asleep
	ctx, came := patience(t), 0
	wcs := make([]roce.Completion, 8)
	for range 6 {
		from.send(t, roce.SendWR{
			Opcode: roce.OpSend, Flags: roce.SendInline, Inline: []byte("now"),
		})
	}
	for came < 4 {
		n, err := to.cq.Wait(ctx, wcs)
		if err != nil {
			t.Fatalf("%d came: %v", came, err)
		}
		came += n
	}
	close(link.up)
	for came < 6 {
		n, err := to.cq.Wait(ctx, wcs)
		if err != nil {
			t.Fatalf("%d came: %v", came, err)
		}
		came += n
	}
}

// TestWaiterDrives: who waits has the turn after some messages, the driver is away, and comes
// back when nobody waits any more: the device does not stand still.
func TestWaiterDrives(t *testing.T) {
	for _, o := range []engine.Options{{}, {Spin: 1}, {Busy: true}} {
		o.Clock = engine.NewSystemClock()
		network := newNetwork(t, 1, o.Clock, sim.Faults{})
		a := openPort(t, network, 0, engine.Options{Clock: o.Clock})
		b := openPort(t, network, 1, o)
		here, there := seatOn(t, b, engine.QPInit{}), seatOn(t, a, engine.QPInit{MaxInline: 64})
		join(t, here, there, engine.ConnectOptions{})
		say := func() {
			here.recv(t, 1, 0, 64)
			there.send(t, roce.SendWR{
				Opcode: roce.OpSend, Flags: roce.SendInline, Inline: []byte("hello"),
			})
		}
		ctx, cancel := context.WithCancel(patience(t))
		got := make(chan error)
		go func() {
			for {
				_, err := here.cq.Wait(ctx, make([]roce.Completion, 1))
				got <- err
				if err != nil {
					return
				}
			}
		}()
		comesAbout(t, func() bool {
			if engine.CallerDrives(b) && engine.Away(b) {
				return true
			}
			say()
			if err := <-got; err != nil {
				t.Fatal(err)
			}
			return false
		})
		cancel()
		if err := <-got; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		comesAbout(t, func() bool { return !engine.CallerDrives(b) && !engine.Away(b) })
		// Nobody waits here, and yet the peer is answered.
		say()
		comesAbout(t, func() bool {
			n, err := there.cq.Poll(make([]roce.Completion, 8))
			return n == 0 && err == nil && there.qp.Snapshot().SendPosted == 0
		})
	}
}

// A soleSleeper is a link that notes when two are in Wait at once.
type soleSleeper struct {
	*sim.Port
	in, crowd atomic.Int32
}

func (l *soleSleeper) Wait(limit time.Duration) error {
	if l.in.Add(1) > 1 {
		l.crowd.Add(1)
	}
	defer l.in.Add(-1)
	return l.Port.Wait(limit)
}

// TestManyWaiters: several wait on queues of their own, with contexts that end, one polls and one
// waits for events, while others post: nobody misses what came, one at a time is in the link, and
// Close ends those who still wait.
func TestManyWaiters(t *testing.T) { manyWait(t, engine.Options{Spin: 1}) }

// TestManyWaitersDrive is the same in direct mode, where nobody else drives.
func TestManyWaitersDrive(t *testing.T) { manyWait(t, engine.Options{Direct: true}) }

func manyWait(t *testing.T, o engine.Options) {
	clock := engine.NewSystemClock()
	o.Clock = clock
	network := newNetwork(t, 1, clock, sim.Faults{})
	a := openPort(t, network, 0, engine.Options{Clock: clock, Spin: 1})
	port := newPort(t, network, 1)
	link := &soleSleeper{Port: port}
	b, err := engine.OpenLink(link, port, o)
	if err != nil {
		t.Fatal(err)
	}
	const rounds = 200
	ctx := patience(t)
	channel, err := b.CreateCompChannel()
	if err != nil {
		t.Fatal(err)
	}
	var all, forever sync.WaitGroup
	idle, err := b.CreateCQ(8)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		forever.Go(func() {
			_, err := idle.Wait(ctx, make([]roce.Completion, 1))
			if !errors.Is(err, engine.ErrClosed) {
				t.Error("it waited, and then: ", err)
			}
		})
	}
	for i := range 4 {
		init := engine.QPInit{MaxInline: 64, MaxRecvWR: 256}
		if i == 3 {
			if init.RecvCQ, err = b.CreateCQ(1024, engine.OnChannel(channel)); err != nil {
				t.Fatal(err)
			}
			if init.SendCQ, err = b.CreateCQ(1024); err != nil {
				t.Fatal(err)
			}
		}
		here := seatOn(t, b, init)
		there := seatOn(t, a, engine.QPInit{MaxInline: 64, MaxRecvWR: 256})
		join(t, here, there, engine.ConnectOptions{})
		for j := range rounds {
			here.recv(t, uint64(j), 0, 64)
			there.recv(t, uint64(j), 0, 64)
		}
		next := nextBy(t, ctx, here, i)
		if i == 3 {
			next = nextEvent(ctx, channel, init.RecvCQ)
		}
		all.Go(func() { bounce(t, here, next, rounds, false) })
		all.Go(func() { bounce(t, there, nextBy(t, ctx, there, 0), rounds, true) })
	}
	all.Wait()
	comesAbout(t, func() bool { return engine.CallerDrives(b) })
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	forever.Wait()
	if n := link.crowd.Load(); n > 0 {
		t.Errorf("%d times two were in the link", n)
	}
}

// A taker takes what came to a queue, at least one completion.
type taker func(dst []roce.Completion) (int, error)

// nextBy waits, with contexts that end soon, or polls.
func nextBy(t *testing.T, ctx context.Context, s *seat, how int) taker {
	return func(dst []roce.Completion) (int, error) {
		for {
			var n int
			var err error
			switch how {
			case 1:
				if n, err = s.cq.Poll(dst); n == 0 && err == nil {
					err = ctx.Err()
				}
			case 2:
				short, cancel := context.WithTimeout(ctx, 50*time.Microsecond)
				n, err = s.cq.Wait(short, dst)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
					err = nil
				}
			default:
				n, err = s.cq.Wait(ctx, dst)
			}
			if n > 0 || err != nil {
				return n, err
			}
		}
	}
}

// nextEvent waits for events of a queue on a channel.
func nextEvent(ctx context.Context, channel *engine.CompChannel, cq *engine.CQ) taker {
	return func(dst []roce.Completion) (int, error) {
		for {
			if n, err := cq.Poll(dst); n > 0 || err != nil {
				return n, err
			}
			if cq.Arm(false) {
				continue
			}
			if _, err := channel.GetEvent(ctx); err != nil {
				return 0, err
			}
			if err := cq.AckEvents(1); err != nil {
				return 0, err
			}
		}
	}
}

// bounce answers each message with one, so many times; who begins sends the first.
func bounce(t *testing.T, s *seat, next taker, rounds int, begins bool) {
	wr := roce.SendWR{Opcode: roce.OpSend, Flags: roce.SendInline, Inline: []byte("ball")}
	send := func() bool {
		for {
			err := s.qp.PostSend(&wr)
			if !errors.Is(err, roce.ErrQueueFull) {
				return err == nil
			}
		}
	}
	ok := !begins || send()
	var wcs [4]roce.Completion
	for came := 0; ok && came < rounds; {
		n, err := next(wcs[:])
		if err != nil {
			t.Errorf("after %d of %d: %v", came, rounds, err)
			return
		}
		for i := range wcs[:n] {
			if wcs[i].Opcode != roce.WCRecv {
				continue
			}
			if came++; came < rounds || !begins {
				ok = ok && send()
			}
		}
	}
	if !ok {
		t.Error("a post failed")
	}
}
