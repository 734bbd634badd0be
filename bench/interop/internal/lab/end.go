package lab

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"xroce/bench/softroce"
	"xroce/xsk/xsktest/timeout"
)

// An End is one of the two programs of a case while it runs.
type End struct {
	Name   string
	Done   <-chan struct{} // closed when it has ended, nil when it was never started
	Output func() string   // what it has printed so far
	Status func() int      // after Done: 0 or what is wrong
	// Await waits until the output satisfies a condition. It returns false when the end or
	// the context ends before.
	Await func(ctx context.Context, condition func(output string) bool) bool
	Stop  func() // makes it end soon
	// Patience is how long it may take to end then on a machine at rest, 0 for 10 s.
	Patience time.Duration
}

// endOf is the end that a process is.
func endOf(name string, p *Process, stop func()) End {
	return End{
		Name: name, Done: p.Done(), Output: p.Output, Status: p.Wait, Await: p.Await, Stop: stop,
	}
}

// InVM starts a command in a VM.
func InVM(vm *softroce.VM, name, command string) (End, error) {
	c, err := vm.Start(command)
	if err != nil {
		return End{}, err
	}
	return End{
		Name: name, Done: c.Done(), Output: c.Output, Await: c.Await,
		Status: func() int {
			status, err := c.Wait(context.Background())
			if err != nil {
				return -1
			}
			return status
		},
		// A VM that is gone has ended the command as well.
		Stop: func() { _ = c.Signal(syscall.SIGKILL) },
	}, nil
}

// grace is how long an end of a machine at rest may take to notice that the other one has failed; a
// variable for tests of what takes longer.
var grace = 2 * time.Second

// Kill stops an end, waits a while for that, and reports whether it has ended. One in a VM that
// stands still never does.
func (e End) Kill() bool {
	e.Stop()
	select {
	case <-e.Done:
		return true
	case <-time.After(timeout.Scaled(cmp.Or(e.Patience, 10*time.Second))):
		return false
	}
}

// KillBoth stops both ends, and adds to what went wrong which of them could not be stopped.
func KillBoth(ends [2]End, wrong string) string {
	for _, e := range ends {
		if !e.Kill() {
			wrong += "; " + e.Name + " cannot be stopped"
		}
	}
	return strings.TrimPrefix(wrong, "; ")
}

// Finish waits for both ends and says what went wrong, "" for nothing. An end whose
// partner failed is stopped after a moment, and both when the context ends. It returns
// soon after that, whatever the ends do.
func Finish(ctx context.Context, ends [2]End) (wrong string) {
	left := map[int]bool{0: true, 1: true}
	note := func(s string) {
		if wrong == "" {
			wrong = s
		}
	}
	var graceOver <-chan time.Time
	for len(left) > 0 {
		which := -1
		select {
		case <-ended(ends[0], left[0]):
			which = 0
		case <-ended(ends[1], left[1]):
			which = 1
		case <-graceOver:
		case <-ctx.Done():
			note("not done in time")
		}
		if which < 0 {
			for i, e := range ends {
				if left[i] && !e.Kill() {
					wrong += "; " + e.Name + " cannot be stopped"
				}
			}
			return wrong
		}
		delete(left, which)
		if status := ends[which].Status(); status != 0 {
			note(fmt.Sprintf("%s ended with status %d", ends[which].Name, status))
			graceOver = time.After(timeout.Scaled(grace))
		}
	}
	return wrong
}

// ended is the channel of an end that is still awaited, nil for one that is not.
func ended(e End, awaited bool) <-chan struct{} {
	if !awaited {
		return nil
	}
	return e.Done
}
