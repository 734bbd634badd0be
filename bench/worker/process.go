package worker

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"time"

	"xroce/xsk/xsktest/timeout"
)

// startTimeout is how long a worker may take to open its sockets, and how much
// longer than its window it may run: a queue whose last owner is still leaving
// is busy for up to five seconds. It grows on a machine that is busy otherwise.
var startTimeout = timeout.Scaled(15 * time.Second)

// A Process is a running worker, seen from the harness. One goroutine drives it.
type Process struct {
	name   string
	cmd    *exec.Cmd
	cancel context.CancelFunc
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr bytes.Buffer
}

// Start runs argv, which must be a worker. It is killed when ctx ends.
func Start(ctx context.Context, argv ...string) (*Process, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	p := &Process{name: strings.Join(argv, " "), cmd: cmd, cancel: cancel}
	p.cmd.Stderr = &p.stderr
	p.cmd.WaitDelay = time.Second
	stdin, err := p.cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("worker: %w", err)
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("worker: %w", err)
	}
	p.stdin, p.stdout = stdin, bufio.NewReader(stdout)
	if err := p.cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("worker: %w", err)
	}
	return p, nil
}

// Ready waits until the worker has opened its sockets, and returns its card.
func (p *Process) Ready() (card string, err error) {
	line, err := p.line(startTimeout)
	if err != nil {
		return "", err
	}
	word, card, _ := strings.Cut(line, " ")
	if word != "ready" {
		return "", p.failure(fmt.Errorf("said %q, not ready", line))
	}
	return card, nil
}

// Go lets the worker work, and hands it the card of its peer.
func (p *Process) Go(card string) error {
	if _, err := io.WriteString(p.stdin, strings.TrimSpace("go "+card)+"\n"); err != nil {
		return p.failure(err)
	}
	return nil
}

// Report waits for the end of a worker that works for about the given time.
func (p *Process) Report(work time.Duration) (Report, error) {
	line, err := p.line(work + startTimeout)
	if err != nil {
		return Report{}, err
	}
	var r Report
	if err := json.Unmarshal([]byte(line), &r); err != nil {
		return Report{}, p.failure(fmt.Errorf("report: %w", err))
	}
	if err := p.cmd.Wait(); err != nil {
		return Report{}, p.failure(err)
	}
	return r, nil
}

// Close ends the worker if it still runs, and waits until it is gone.
func (p *Process) Close() {
	p.cancel()
	_ = p.cmd.Wait() // second Wait of a finished worker, or the end by our own kill
}

// line reads one line; a worker that stays silent for too long is ended.
func (p *Process) line(limit time.Duration) (string, error) {
	timer := time.AfterFunc(limit, p.cancel)
	line, err := p.stdout.ReadString('\n')
	if !timer.Stop() && err != nil {
		return "", p.failure(fmt.Errorf("silent for %v", limit))
	}
	if err != nil {
		return "", p.failure(err)
	}
	return strings.TrimSpace(line), nil
}

// failure ends the worker and adds what it wrote to standard error.
func (p *Process) failure(err error) error {
	p.Close()
	said := strings.TrimSpace(p.stderr.String())
	if said == "" {
		said = "it said nothing"
	}
	return fmt.Errorf("worker %s: %w: %s", p.name, err, said)
}
