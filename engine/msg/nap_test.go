package msg_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"xroce/engine/msg"
	"xroce/roce"
	rmsg "xroce/roce/msg"
)

// TestNaps: who waits in direct mode for longer than it spins sleeps in the link, takes what comes
// to others, too, and allocates nothing.
func TestNaps(t *testing.T) {
	l := newLoop(t)
	e, ca, cb := l.messagesSpinning(t, time.Nanosecond)
	ctx := within(t)
	u := newBurst(e, ca, cb, 1, 64)
	run := func() { must(t, u.run(ctx)) }
	for range 100 {
		run()
	}
	if n := testing.AllocsPerRun(200, run); n > 0 && !raceDetector {
		t.Errorf("%v allocations a message", n)
	}
	const others = 4
	ends := make(chan error, others)
	receives := make([]msg.Receive, others)
	for i := range receives {
		r := &receives[i]
		r.Buffers, r.From, r.Tag, r.Mask = [][]byte{make([]byte, 8)}, cb, uint64(i), ^uint64(0)
		must(t, e.PostReceive(r))
		go func() { ends <- r.Wait(ctx) }()
	}
	for i := range receives {
		must(t, ca.PostSend(&msg.Send{Buffers: [][]byte{make([]byte, 8)}, Tag: uint64(i)}))
		must(t, <-ends)
	}
}

// TestNapsEnd: a context ends who sleeps in the link.
func TestNapsEnd(t *testing.T) {
	l := newLoop(t)
	_, _, cb := l.messagesSpinning(t, time.Nanosecond)
	ctx, cancel := context.WithTimeout(within(t), 3*time.Millisecond)
	defer cancel()
	if _, err := cb.Receive(ctx, make([]byte, 8)); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
}

// TestDueWhileSomebodySpins: who spins has the machine's time go on: a peer that says nothing is
// asked whether it is there. Nobody else can do it: the goroutine of the services does not call the
// endpoint any more.
func TestDueWhileSomebodySpins(t *testing.T) {
	l := newLoop(t)
	e, _, cb := l.messagesWith(t, msg.Options{
		Spin: time.Hour, Machine: rmsg.Config{Keepalive: 10 * roce.Millisecond},
	})
	e.LeaveToCallers()
	all := within(t)
	ctx, cancel := context.WithCancel(all)
	received := make(chan error, 1)
	go func() {
		_, err := cb.Receive(ctx, make([]byte, 8))
		received <- err
	}()
	for e.Snapshot()[rmsg.KeepaliveProbes] < 3 {
		must(t, all.Err())
		runtime.Gosched()
	}
	cancel()
	if err := <-received; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
