package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"xroce/bench/softroce/order"
)

func main() {
	if err := work(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}

// work serves, or with arguments runs a program as a member of a group.
func work(args []string) error {
	if len(args) > 0 {
		return runAsMember(args)
	}
	port, err := openPort("/sys/class/virtio-ports", order.Port)
	if err != nil {
		return err
	}
	return newAgent(port).serve(port)
}

// openPort opens the virtio-serial port of a name.
func openPort(class, name string) (*os.File, error) {
	files, err := filepath.Glob(filepath.Join(class, "*", "name"))
	if err != nil {
		return nil, err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err == nil && strings.TrimSpace(string(text)) == name {
			device := filepath.Join("/dev", filepath.Base(filepath.Dir(file)))
			return os.OpenFile(device, os.O_RDWR, 0)
		}
	}
	return nil, fmt.Errorf("no port is called %s", name)
}

// An agent is the running end in the guest.
type agent struct {
	mu  sync.Mutex // of what follows
	out *json.Encoder
	// groups are the process groups of the commands that run.
	groups map[int]int
}

func newAgent(w io.Writer) *agent {
	return &agent{out: json.NewEncoder(w), groups: map[int]int{}}
}

// serve obeys until the other end closes.
func (a *agent) serve(r io.Reader) error {
	if err := a.tell(order.Notice{}); err != nil {
		return err
	}
	lines := bufio.NewReader(r)
	retries := 5000
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && retries > 0 {
			// The port says so until the guest's driver knows that the host's end
			// is open, which it learns by a message.
			retries--
			time.Sleep(time.Millisecond)
			continue
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		retries = 0
		var o order.Order
		if err := json.Unmarshal(line, &o); err != nil {
			return fmt.Errorf("order %q: %w", line, err)
		}
		if o.Start != "" {
			go a.run(o)
		} else if err := a.signal(o); err != nil {
			return err
		}
	}
}

func (a *agent) tell(n order.Notice) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.out.Encode(n)
}

// signal sends a signal to a command. One that has ended is fine.
func (a *agent) signal(o order.Order) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	group, ok := a.groups[o.ID]
	if !ok {
		return nil
	}
	if err := unix.Kill(-group, unix.Signal(o.Signal)); err != nil && !errors.Is(err, unix.ESRCH) {
		return err
	}
	return nil
}

// run runs one command to its end.
func (a *agent) run(o order.Order) {
	end := order.Notice{ID: o.ID, Ended: true}
	cmd := exec.Command("/bin/sh", "-c", o.Start)
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Stdout = writer{a, o.ID}
	cmd.Stderr = cmd.Stdout
	// What the command leaves running may hold its output open.
	cmd.WaitDelay = time.Second
	a.mu.Lock()
	err := cmd.Start()
	if err == nil {
		a.groups[o.ID] = cmd.Process.Pid
	}
	a.mu.Unlock()
	if err == nil {
		err = cmd.Wait()
	}
	a.mu.Lock()
	delete(a.groups, o.ID)
	a.mu.Unlock()
	if cmd.ProcessState != nil {
		end.Status = status(cmd.ProcessState)
	} else {
		end.Status, end.Output = 127, []byte(err.Error())
	}
	// When the port is closed serve sees it as well.
	_ = a.tell(end)
}

// status is the exit status as a shell gives it.
func status(s *os.ProcessState) int {
	type ended interface {
		Signaled() bool
		Signal() syscall.Signal
	}
	if e, ok := s.Sys().(ended); ok && e.Signaled() {
		return 128 + int(e.Signal())
	}
	return s.ExitCode()
}

// A writer sends what a command prints.
type writer struct {
	*agent
	id int
}

// Write implements io.Writer.
func (w writer) Write(b []byte) (int, error) {
	if err := w.tell(order.Notice{ID: w.id, Output: b}); err != nil {
		return 0, err
	}
	return len(b), nil
}
