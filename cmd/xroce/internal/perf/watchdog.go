package perf

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"xroce/cmd/xroce/internal/peer"
	"xroce/roce"
)

// How long nothing may happen.
const (
	// setupTime bounds what comes before the test: who says nothing is not a peer.
	setupTime = 30 * time.Second
	// silence is how long any test waits for something to happen, the tool's time.
	silence = 120 * time.Second
	// lossTime is how long an unreliable one waits for messages: they are lost.
	lossTime = 10 * time.Second
	// throughTime is how long it waits after the peer has said that it is through, and little
	// or nothing is on its way then: for a loop that has to share its processor.
	throughTime = 5 * time.Second
	// hiccup is how long an end that shares its processor may not be scheduled.
	hiccup = time.Second
	// glance is how often the watchdog looks.
	glance = 100 * time.Millisecond
	// look is how often it looks at the queue pairs while no message completes.
	look = 5 * glance
)

var (
	// errLost says that messages were lost on the way, which is no failure of a service
	// that loses messages.
	errLost = errors.New("messages were lost")
	// errThrough says that the peer has ended the test, and this end has not.
	errThrough = errors.New("the peer is through with the test and this end is not: start both " +
		"with the same test, -s, -n, -D, -q and -b")
	// errNoTrip says that nothing was measured.
	errNoTrip = errors.New("no round trip was over in the time that counts: make it longer (-D)")
	// errUnanswered says that the peer's device did not answer until the time was over.
	errUnanswered = errors.New("the peer did not answer in time: no round trip was over at the " +
		"end of the time that counts")
	// errSetup says that the peer did not get as far as the test.
	errSetup = errors.New("the peer did not finish the setup")
)

// A patience is how long this end waits for the peer in each case.
type patience struct{ setup, silence, through time.Duration }

// within bounds each time, by nothing where that is 0.
func (p patience) within(most patience) patience {
	bound := func(d, most time.Duration) time.Duration { return min(d, cmp.Or(most, d)) }
	return patience{
		bound(p.setup, most.setup), bound(p.silence, most.silence), bound(p.through, most.through),
	}
}

// A watchdog ends a wait for the peer when that has gone or nothing happens any more.
type watchdog struct {
	patience
	filling  time.Duration // that the peer may take for its memory beside silence
	progress atomic.Uint64 // anything that changes when something happens
	cancel   context.CancelCauseFunc
	stopped  chan struct{}
}

// A watched is how long nothing has happened to what is watched over.
type watched struct {
	messages uint64        // how far it is
	quiet    time.Duration // since a message was complete
	still    time.Duration // since the queue pairs have come further, too
}

// begin begins to watch over something that runs under the returned context, until stop
// is called. It ends that when the device fails, when nothing happens for too long, and
// when judge, if not nil, returns an error.
func (w *watchdog) begin(
	ctx context.Context, e *end, judge func(watched) error,
) context.Context {
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.stopped = make(chan struct{})
	w.progress.Store(0)
	go func() {
		defer close(w.stopped)
		if err := w.patrol(ctx, e, judge); err != nil {
			w.cancel(err)
		}
	}()
	return ctx
}

func (w *watchdog) stop() {
	w.cancel(context.Canceled)
	<-w.stopped
}

// patrol looks once in a while whether something has happened, and returns why there is
// nothing more to wait for.
func (w *watchdog) patrol(ctx context.Context, e *end, judge func(watched) error) error {
	every := time.NewTicker(glance)
	defer every.Stop()
	var now watched
	at := e.position()
	most := max(w.silence, 2*e.cfg.Gap) + w.filling
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
		if e.dev.Failed() {
			return e.dev.Err()
		}
		if n := w.progress.Load(); n != now.messages {
			now = watched{messages: n}
			continue
		}
		now.quiet += glance
		now.still += glance
		if now.quiet%look != 0 {
			continue
		}
		if p := e.position(); p != at {
			at, now.still = p, 0
		}
		if judge != nil {
			if err := judge(now); err != nil {
				return err
			}
		}
		if now.still >= most {
			return fmt.Errorf("nothing happened for %s: were both ends started with the same "+
				"flags?", now.still)
		}
	}
}

// position is a number that is another one when something was acknowledged, or a
// request has come: a long message is on its way.
func (e *end) position() (sum uint64) {
	for i := range e.flows {
		sum += peer.Position(e.flows[i].qp)
	}
	return sum
}

// sending reports whether work of a send queue is not complete.
func (e *end) sending() bool {
	for i := range e.flows {
		if e.flows[i].qp.Snapshot().SendPosted > 0 {
			return true
		}
	}
	return false
}

// watch watches over a loop: besides what ends any wait, the peer may hang up, or be
// through before this end is.
func (w *watchdog) watch(ctx context.Context, e *end, via Connector) context.Context {
	ctx = w.begin(ctx, e, func(now watched) error { return w.judge(e, now, via.Heard) })
	cancel := w.cancel
	via.Watch(func(err error) {
		if c := e.cfg; c.Test.Latency && c.Test.Verb == Write {
			// These part without a word, and the last one needs a moment longer.
			time.AfterFunc(w.through, func() { cancel(err) })
			return
		}
		cancel(err)
	})
	return ctx
}

// judge returns why a loop need not be waited for, nil when it must be. heard reports whether the
// peer has said that it is through.
func (w *watchdog) judge(e *end, now watched, heard func() bool) error {
	c := e.cfg
	switch {
	case c.Duration > 0 && !c.Test.Latency:
		// Its time ends the loop, and nobody knows how many were to come.
	case c.Type != roce.TypeRC && (c.receives() || c.Test.Latency):
		// A long message may be on its way, and one that is waited with on purpose is none yet.
		most := lossTime + 2*c.Gap
		if c.Duration > 0 && now.still >= max(c.Duration, most) {
			return errLost // of the first one, too: nothing has begun the time
		}
		if now.messages > 0 && (now.still >= most || now.still >= w.through+2*c.Gap && heard()) {
			return errLost
		}
	case c.Duration == 0 && c.receives() && heard() && now.still >= w.through && !e.sending():
		// What the peer sent was acknowledged before it went on: no more will come.
		return errThrough
	}
	return nil
}
