package main

import (
	"bytes"
	"context"
	"os/exec"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A process is xroce while it runs. Safe for concurrent use.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}

	mu   sync.Mutex // of what follows
	out  bytes.Buffer
	more chan struct{} // closed when out has grown
}

// start starts a program; when the context ends it is interrupted, and killed
// when that does not end it.
func start(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, done: make(chan struct{}), more: make(chan struct{})}
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
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.more)
	p.more = make(chan struct{})
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// await waits until the output satisfies a condition, and returns false when the
// program or the context ends before.
func (p *process) await(ctx context.Context, condition func(output string) bool) bool {
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
			return condition(p.output())
		case <-ctx.Done():
			return false
		}
	}
}

// wait waits for the end and returns the exit status, -1 when a signal ended it.
func (p *process) wait() int {
	<-p.done
	return p.cmd.ProcessState.ExitCode()
}
