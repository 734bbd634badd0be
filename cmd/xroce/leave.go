package main

import (
	"cmp"
	"context"
	"io"
	"time"
)

// leavePatience is how long a command that is to end may go on with what it has.
const leavePatience = 2 * time.Second

// A leavable is an output of a command that goes on with other things as well. When it is to end, a
// Write that nobody takes is left behind. Only one goroutine may write.
type leavable struct {
	*app
	ctx  context.Context
	to   io.Writer
	copy []byte // of what is written: the caller's may change when it is left behind
}

// Write implements io.Writer.
func (l *leavable) Write(b []byte) (int, error) {
	mine := append(l.copy[:0], b...)
	l.copy = mine
	written := make(chan int, 1)
	err := l.leave(l.ctx, func() error {
		n, err := l.to.Write(mine)
		written <- n
		return err
	})
	select {
	case n := <-written:
		return n, err
	default:
		l.copy = nil // it may still be read
		return 0, err
	}
}

// leave runs a command that holds nothing but its input and output. An input in which nothing
// comes, or an output that nobody takes, may hold it for ever: one signal ends it all the same, and
// what waits is left behind.
func (a *app) leave(ctx context.Context, run func() error) error {
	done := make(chan error, 1)
	around := func(f func()) { f() }
	if a.around != nil {
		around = a.around
	}
	go around(func() { done <- run() })
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-done:
		return err
	case <-time.After(cmp.Or(a.dumpPatience, leavePatience)):
		return ctx.Err()
	}
}
