package main

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"xroce/bench/softroce"
)

// An end is one of the two programs of a case while it runs.
type end struct {
	name   string
	done   <-chan struct{} // closed when it has ended
	output func() string
	status func() int // after done: 0 or what is wrong
	stop   func()     // makes it end soon
}

// ours starts xroce in the namespace. It is interrupted when the context ends.
func (l *lab) ours(ctx context.Context, args []string) (end, *process, error) {
	ctx, cancel := context.WithCancel(ctx)
	p, err := start(l.site.Command(ctx, append([]string{l.xroce}, args...)...))
	if err != nil {
		cancel()
		return end{}, nil, err
	}
	return end{
		name: "xroce", done: p.done, output: p.output, status: p.wait, stop: cancel,
	}, p, nil
}

// inVM starts a command in a VM.
func inVM(vm *softroce.VM, name, command string) (end, *softroce.Command, error) {
	c, err := vm.Start(command)
	if err != nil {
		return end{}, nil, err
	}
	return end{
		name: name, done: c.Done(), output: c.Output,
		status: func() int {
			status, err := c.Wait(context.Background())
			if err != nil {
				return -1
			}
			return status
		},
		// A VM that is gone has ended the command as well.
		stop: func() { _ = c.Signal(syscall.SIGKILL) },
	}, c, nil
}

// grace is how long an end may take to notice that the other one has failed.
const grace = 2 * time.Second

// finish waits for both ends and says what went wrong, "" for nothing. An end
// whose partner failed is stopped after a moment, and both when the context ends.
func finish(ctx context.Context, ends [2]end) string {
	left := map[int]bool{0: true, 1: true}
	var wrong string
	note := func(s string) {
		if wrong == "" {
			wrong = s
		}
	}
	var impatient <-chan time.Time
	stop := func() {
		for i := range left {
			ends[i].stop()
		}
	}
	expired := ctx.Done()
	for len(left) > 0 {
		which := -1
		select {
		case <-ended(ends[0], left[0]):
			which = 0
		case <-ended(ends[1], left[1]):
			which = 1
		case <-impatient:
			stop()
		case <-expired:
			note("not done in time")
			expired = nil
			stop()
		}
		if which < 0 {
			continue
		}
		delete(left, which)
		if status := ends[which].status(); status != 0 {
			note(fmt.Sprintf("%s ended with status %d", ends[which].name, status))
			impatient = time.After(grace)
		}
	}
	return wrong
}

// ended is the channel of an end that is still awaited, nil for one that is not.
func ended(e end, awaited bool) <-chan struct{} {
	if !awaited {
		return nil
	}
	return e.done
}
