package lab

import (
	"bytes"
	"context"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A Process is xroce while it runs. Safe for concurrent use.
type Process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex // of what follows
	out  bytes.Buffer
	more chan struct{} // closed when out has grown
}

// Start starts a program; when the context ends it is interrupted, and killed
// when that does not end it.
func Start(cmd *exec.Cmd) (*Process, error) {
	p := &Process{cmd: cmd, done: make(chan struct{}), more: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.Cancel = func() error { return cmd.Process.Signal(unix.SIGTERM) }
	cmd.WaitDelay = 3 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = cmd.Wait() // the status says it
		close(p.done)
	}()
	return p, nil
}

// Write takes what the program prints.
func (p *Process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
	return p.out.Write(b)
}

// Output is what the program has printed so far.
func (p *Process) Output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// Await waits until the output satisfies a condition, and returns false when the
// program or the context ends before.
func (p *Process) Await(ctx context.Context, condition func(output string) bool) bool {
	for {
		p.mu.Lock()
		text, more := p.out.String(), p.more
		p.mu.Unlock()
		if condition(text) {
			return true
		}
		select {
		case <-more:
		case <-p.done:
			return condition(p.Output())
		case <-ctx.Done():
			return false
		}
	}
}

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Wait waits for the end and returns the exit status, -1 when a signal ended it.
func (p *Process) Wait() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}
