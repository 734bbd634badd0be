package main

import (
	"cmp"
	"context"
	"time"
)

// leavePatience is how long a command that is to end may go on with what it has.
const leavePatience = 2 * time.Second

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
