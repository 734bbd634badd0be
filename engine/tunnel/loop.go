package tunnel

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"syscall"
	"time"

	"xroce/encap/inner"
	"xroce/engine/internal/affinity"
	"xroce/roce/clock"
)

// A PolledQueue is a Queue that makes nobody wait: Read returns syscall.EAGAIN when there is
// nothing, Write when there is no room. An inside has a single one, and its device is in direct
// mode: then one thread, the loop, reads the inside, drives the device and writes to the inside,
// and no datagram is handed from one thread to another.
type PolledQueue interface {
	Queue
	// Poll returns the descriptor that can be read when the queue can, or -1: then wake is
	// called whenever something has come. It is called once, before Read.
	Poll(wake func()) (fd int)
}

// Bounds of a round of the loop.
const (
	readBatch = 32          // datagrams that are read before the device is driven
	readBytes = 128 << 10   // bytes of them: to send them takes longer than peers wait to be heard
	sleepMost = time.Second // a sleep
)

// loop is run for a queue that is polled: it does the work of the receiver, too.
type loop struct {
	*lane
	in    *receiver
	queue PolledQueue
	fd    int  // of the queue, -1 for none
	awake bool // what comes from inside ends a sleep
	rest  rest
}

// polled is the queue of the inside when that is polled, nil when goroutines read it.
func (t *Tunnel) polled() PolledQueue {
	q, _ := t.inside.Queues[0].(PolledQueue)
	return q
}

// checkPolled says what keeps a polled queue from being served.
func (t *Tunnel) checkPolled() error {
	if t.polled() != nil && (len(t.inside.Queues) > 1 || !t.dev.Direct()) {
		return errors.New("tunnel: an inside that is polled has one queue, and a device in " +
			"direct mode")
	}
	return nil
}

// runLoop moves datagrams until the context ends, which is no error.
func (t *Tunnel) runLoop(ctx context.Context, q PolledQueue) error {
	runtime.LockOSThread() // for good: the thread ends with the goroutine, and its affinity
	if t.config.CPU > 0 {
		affinity.Pin(t.config.CPU - 1)
	}
	defer t.dev.Attend()()
	defer context.AfterFunc(ctx, t.dev.Rouse)()
	l := &loop{
		lane: t.lanes[0], in: t.in, queue: q, fd: q.Poll(t.dev.Rouse),
		rest: rest{always: clock.Time(t.config.Spin)},
	}
	l.outbox.idle = l.idle
	if err := l.listen(true); err != nil {
		return fmt.Errorf("tunnel: interface %s: %w", t.inside.Name, err)
	}
	defer func() { _ = l.listen(false) }() // it could before
	for ctx.Err() == nil {
		worked, err := l.round(ctx)
		switch {
		case err != nil:
			return err
		case worked:
			l.rest.ends(t.dev.Now())
		case l.rest.mayRest(t.dev.Now()):
			l.sleep()
		case l.rest.always == 0:
			yield()
		}
	}
	return nil
}

// listen has what comes from inside end a sleep, or not: not while there is no room for it.
func (l *loop) listen(on bool) error {
	if l.fd < 0 || l.awake == on {
		return nil
	}
	l.awake = on
	if !on {
		return l.t.dev.WakeOn(-1)
	}
	return l.t.dev.WakeOn(l.fd)
}

// round moves what there is in each direction, and reports whether there was anything. What came
// goes inside before that is asked for more: each question is a system call.
func (l *loop) round(ctx context.Context) (worked bool, err error) {
	l.t.dev.Progress()
	if worked, err = l.complete(); err != nil {
		return worked, err
	}
	if err := l.listen(l.hasRoom()); err != nil {
		return worked, err
	}
	taken := 0
	for total := 0; taken < readBatch && total < readBytes && l.hasRoom(); taken++ {
		n, err := l.read(ctx)
		if err != nil {
			return worked, err
		}
		if n == 0 {
			break
		}
		total += n
	}
	if taken > 0 {
		l.t.dev.Progress()
	}
	return worked || taken > 0, nil
}

// heldMost is how many bytes on their way to a single peer are held here, where they wait for
// acknowledges, some three times what a window has. The kernel can hold more, and tells its
// programs; here it would only be pushed out of the cache.
const heldMost = 1 << 20

// hasRoom reports whether more is to be read from inside; else that waits. With several peers, one
// that does not take what is its must not hold up the others.
func (l *loop) hasRoom() bool {
	return len(l.large.free) > 0 && (l.t.single == nil || l.held < heldMost)
}

// read takes a datagram from the inside, and returns its length with the kernel's words, 0 when
// there is none.
func (l *loop) read(ctx context.Context) (int, error) {
	s, err := l.take(ctx, &l.large)
	if err != nil {
		return 0, err
	}
	defer l.release(s)
	n, err := l.queue.Read(s.b[dataOff-inner.VNetLen:])
	switch {
	case errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EINTR):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("tunnel: interface %s: %w", l.t.inside.Name, err)
	}
	l.hold(s, n)
	if n > inner.VNetLen {
		l.handle(ctx, s, n-inner.VNetLen)
	}
	return n, nil
}

// complete takes what came from peers, and what became of work requests.
func (l *loop) complete() (worked bool, err error) {
	if l.t.dev.Failed() {
		return false, fmt.Errorf("tunnel: %w", l.t.dev.Err())
	}
	n, err := l.in.poll()
	if err != nil {
		return false, err
	}
	sent, err := l.reap()
	return n+sent > 0, err
}

// sleep drives the device and sleeps until a packet or a datagram comes, unless there is room
// again that a connection had which is over.
func (l *loop) sleep() {
	if l.sweep() == 0 {
		l.t.dev.Drive(sleepMost, l.in.cq, l.cq)
	}
}

// idle is what a lane does that waits for room: it receives meanwhile, since peers wait for that
// as it does for them.
func (l *loop) idle(ctx context.Context) error {
	worked, err := l.complete()
	if err != nil {
		return err
	}
	if err := l.listen(false); err != nil {
		return err
	}
	if !worked {
		l.sleep()
	}
	return ctx.Err()
}
