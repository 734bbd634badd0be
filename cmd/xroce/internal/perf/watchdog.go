package perf

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"xroce/roce"
)

// How long nothing may happen.
const (
	// silence is how long any test waits for something to happen.
	silence = 120 * time.Second
	// lossTime is how long an unreliable one waits for messages: they are lost.
	lossTime = 10 * time.Second
	// afterword is how long it waits after the peer has said that it is through.
	afterword = time.Second
)

// errLost says that messages were lost on the way, which is no failure of a service
// that loses messages.
var errLost = errors.New("messages were lost")

// A watchdog ends a loop when the peer has gone or nothing happens any more.
type watchdog struct {
	progress atomic.Uint64 // anything that changes when something happens
	cancel   context.CancelCauseFunc
	stopped  chan struct{}
}

// watch begins to watch over a loop, which must run under the returned context and
// call stop in the end.
func (w *watchdog) watch(ctx context.Context, c *Config, via Connector) context.Context {
	ctx, w.cancel = context.WithCancelCause(ctx)
	w.stopped = make(chan struct{})
	w.progress.Store(0)
	via.Watch(func(err error) {
		if c.Test.Latency && c.Test.Verb == Write {
			// These part without a word, and the last one needs a moment longer.
			time.AfterFunc(afterword, func() { w.cancel(err) })
			return
		}
		w.cancel(err)
	})
	go func() {
		defer close(w.stopped)
		w.patrol(ctx, c, via)
	}()
	return ctx
}

func (w *watchdog) stop() {
	w.cancel(context.Canceled)
	<-w.stopped
}

// patrol looks once in a while whether something has happened.
func (w *watchdog) patrol(ctx context.Context, c *Config, via Connector) {
	const interval = 100 * time.Millisecond
	every := time.NewTicker(interval)
	defer every.Stop()
	var seen uint64
	var quiet time.Duration
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		if now := w.progress.Load(); now != seen {
			seen, quiet = now, 0
			continue
		}
		quiet += interval
		unreliable := c.Type != roce.TypeRC && seen > 0
		switch {
		case unreliable && (quiet >= lossTime || via.Heard() && quiet >= afterword):
			w.cancel(errLost)
		case quiet >= max(silence, 2*c.Duration):
			w.cancel(fmt.Errorf("nothing happened for %s: were both ends started with the same "+
				"flags?", quiet.Round(time.Second)))
		}
	}
}
