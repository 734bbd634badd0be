package softroce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"syscall"
	"time"

	"xroce/bench/softroce/order"
	"xroce/xsk/xsktest/timeout"
)

// ErrGone says that the agent of a VM does not answer any more.
var ErrGone = errors.New("softroce: the VM is gone")

// ErrPanic says why: the kernel in it panicked.
var ErrPanic = errors.New("softroce: the guest's kernel panicked")

// A guest is the connection to the agent.
type guest struct {
	conn  net.Conn
	ready chan struct{} // closed when the agent has said so
	gone  chan struct{} // closed when it says nothing more

	mu       sync.Mutex // of what follows
	out      *json.Encoder
	last     int              // the number of the last command
	commands map[int]*Command // those that run, nil when the agent is gone
}

func newGuest(conn net.Conn) *guest {
	g := &guest{
		conn: conn, ready: make(chan struct{}), gone: make(chan struct{}),
		out: json.NewEncoder(conn), commands: map[int]*Command{},
	}
	go g.listen()
	// The agent knows by the first line that this end is open. One that is gone
	// already shows in awaitReady.
	_ = g.tell(order.Order{})
	return g
}

// listen takes the agent's notices until the connection ends. All that ran in the VM
// has ended then.
func (g *guest) listen() {
	defer g.lose()
	in := json.NewDecoder(g.conn)
	for {
		var n order.Notice
		if err := in.Decode(&n); err != nil {
			return
		}
		if n.ID == 0 {
			close(g.ready)
			continue
		}
		g.mu.Lock()
		c := g.commands[n.ID]
		if n.Ended {
			delete(g.commands, n.ID)
		}
		g.mu.Unlock()
		if c != nil {
			c.hear(n)
		}
	}
}

// lose notes that the agent is gone, with all commands.
func (g *guest) lose() {
	close(g.gone)
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, c := range g.commands {
		close(c.done)
	}
	g.commands = nil
}

func (g *guest) awaitReady(ctx context.Context) error {
	select {
	case <-g.ready:
		return nil
	case <-g.gone:
		return ErrGone
	case <-ctx.Done():
		return ctx.Err()
	}
}

// tellTime is how long the agent may take to hear an order. One that does not is gone:
// its VM stands still.
const tellTime = 10 * time.Second

func (g *guest) tell(o order.Order) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.conn.SetWriteDeadline(time.Now().Add(timeout.Scaled(tellTime))); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err := g.out.Encode(o); err != nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return nil
}

// close is idempotent.
func (g *guest) close() error {
	err := closed(g.conn.Close())
	<-g.gone
	return err
}

// A Command is a shell command that runs in a VM, or ran. Safe for concurrent
// use.
type Command struct {
	guest *guest
	id    int
	done  chan struct{} // closed when it has ended, with its VM if not before

	mu     sync.Mutex // of what follows
	output []byte
	more   chan struct{} // closed when output has grown
	ended  bool          // by itself, with a status
	status int
}

// Start starts a shell command in the VM.
func (v *VM) Start(command string) (*Command, error) {
	g := v.guest
	c := &Command{guest: g, done: make(chan struct{}), more: make(chan struct{})}
	g.mu.Lock()
	if g.commands == nil {
		g.mu.Unlock()
		return nil, ErrGone
	}
	g.last++
	c.id = g.last
	g.commands[c.id] = c
	g.mu.Unlock()
	if err := g.tell(order.Order{ID: c.id, Start: command}); err != nil {
		return nil, err
	}
	return c, nil
}

// Run runs a shell command and returns what it printed, both streams together,
// and its exit status. When the context ends first the command is killed.
func (v *VM) Run(ctx context.Context, command string) (output string, status int, err error) {
	c, err := v.Start(command)
	if err != nil {
		return "", 0, err
	}
	status, err = c.Wait(ctx)
	return c.Output(), status, err
}

// hear takes a notice of the agent.
func (c *Command) hear(n order.Notice) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.output = append(c.output, n.Output...)
	close(c.more)
	c.more = make(chan struct{})
	if n.Ended {
		c.ended, c.status = true, n.Status
		close(c.done)
	}
}

// Output returns what the command has printed so far.
func (c *Command) Output() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return string(c.output)
}

// Done is closed when the command has ended, or its VM is gone.
func (c *Command) Done() <-chan struct{} { return c.done }

// Wait waits for the end of the command and returns its exit status, or 128 and
// the number of the signal that ended it. When the context ends first it kills
// the command, with all that it started, and returns the context's error.
func (c *Command) Wait(ctx context.Context) (status int, err error) {
	select {
	case <-c.done:
	case <-ctx.Done():
		return 0, errors.Join(ctx.Err(), c.Signal(syscall.SIGKILL))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		return 0, ErrGone
	}
	return c.status, nil
}

// Await waits until what the command has printed satisfies a condition. It
// returns false when the command or the context ends before.
func (c *Command) Await(ctx context.Context, condition func(output string) bool) bool {
	for {
		c.mu.Lock()
		text, more := string(c.output), c.more
		c.mu.Unlock()
		if condition(text) {
			return true
		}
		select {
		case <-more:
		case <-c.done:
			return condition(c.Output())
		case <-ctx.Done():
			return false
		}
	}
}

// Signal sends a signal to the command and all that it started. One that has
// ended is fine.
func (c *Command) Signal(s syscall.Signal) error {
	return c.guest.tell(order.Order{ID: c.id, Signal: int(s)})
}
