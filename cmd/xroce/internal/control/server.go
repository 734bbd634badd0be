package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"xroce/engine"
)

// Bounds of what a client can ask.
const (
	maxRequest = 4 << 10 // bytes
	maxClients = 4       // at once
	// MaxRows is how many objects of a kind of a device an answer has at most.
	MaxRows = 1 << 16
)

// clientTimeout is how long a client may take to ask, and to take its answer.
const clientTimeout = 2 * time.Second

// A Request is what a client asks: the objects of all devices, at most Rows of a kind
// and device.
type Request struct {
	Get  string `json:"get"` // "resources"
	Rows int    `json:"rows"`
	Keys bool   `json:"keys"` // with memory keys and addresses
}

// getResources is the one thing that can be asked for.
const getResources = "resources"

// An Answer is what a process says of itself.
type Answer struct {
	PID     int                `json:"pid"`
	Comm    string             `json:"comm"`
	Devices []engine.Resources `json:"devices"`
	Error   string             `json:"error,omitempty"` // why there is nothing else
}

// A Server answers for the devices of this process.
type Server struct {
	listener      *net.UnixListener
	clientTimeout time.Duration
	slots         chan struct{}
	serving       sync.WaitGroup
	ctx           context.Context // ends with Close
	end           context.CancelFunc

	mu      sync.Mutex
	devices []*engine.Device
}

// Listen makes the socket of this process in a directory, which is made if need be,
// and answers on it until Close.
func Listen(dir string) (*Server, error) { return listenWith(dir, clientTimeout) }

// listenWith is Listen with another clientTimeout.
func listenWith(dir string, clientTimeout time.Duration) (*Server, error) {
	if err := makeDirectory(dir); err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	path := socketOf(dir, os.Getpid())
	// The number was another process's before, which did not clean up.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), l.Close())
	}
	s := &Server{listener: l, clientTimeout: clientTimeout, slots: make(chan struct{}, maxClients)}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.serving.Go(s.serve)
	return s, nil
}

// Add has the server answer for a device, too, until the device fails or is closed.
func (s *Server) Add(d *engine.Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices = append(s.devices, d)
}

// Close removes the socket and waits for the answers that are under way.
func (s *Server) Close() error {
	s.end()
	err := s.listener.Close() // and removes the file
	s.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (s *Server) serve() {
	for {
		conn, err := s.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			// Out of descriptors, for one: others may get some back.
			select {
			case <-s.ctx.Done():
				return
			case <-time.After(10 * time.Millisecond):
			}
			continue
		}
		select {
		case s.slots <- struct{}{}:
		case <-s.ctx.Done():
			conn.Close()
			return
		}
		s.serving.Go(func() {
			defer func() { <-s.slots }()
			defer conn.Close()
			defer context.AfterFunc(s.ctx, func() { conn.Close() })()
			// Whom the answer does not reach knows that.
			_ = s.answer(conn)
		})
	}
}

// answer serves one client.
func (s *Server) answer(conn net.Conn) error {
	if err := conn.SetDeadline(time.Now().Add(s.clientTimeout)); err != nil {
		return err
	}
	var q Request
	a := Answer{PID: os.Getpid(), Comm: comm()}
	switch err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&q); {
	case err != nil:
		a.Error = fmt.Sprintf("not a request: %v", err)
	case q.Get != getResources:
		a.Error = fmt.Sprintf("no %q, there is %s", q.Get, getResources)
	case q.Rows < 0 || q.Rows > MaxRows:
		a.Error = fmt.Sprintf("%d rows are not in 0..%d", q.Rows, MaxRows)
	default:
		a.Devices = s.resources(q)
	}
	// Anew, since looking may have waited for a busy device.
	if err := conn.SetDeadline(time.Now().Add(s.clientTimeout)); err != nil {
		return err
	}
	return json.NewEncoder(conn).Encode(a)
}

// resources are those of the devices that are open.
func (s *Server) resources(q Request) []engine.Resources {
	s.mu.Lock()
	list := make([]*engine.Device, 0, len(s.devices))
	for _, d := range s.devices {
		if !d.Failed() {
			list = append(list, d)
		}
	}
	s.devices = append(s.devices[:0], list...)
	s.mu.Unlock()
	all := []engine.Resources{}
	for _, d := range list {
		r := d.Resources(q.Rows)
		if !q.Keys {
			r.HideKeys()
		}
		all = append(all, r)
	}
	return all
}

// comm is the name of this process, as the kernel has it.
func comm() string {
	b, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return "xroce"
	}
	return strings.TrimSpace(string(b))
}
