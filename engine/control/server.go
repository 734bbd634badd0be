package control

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

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
	directory     *os.File
	name          string // of the socket
	listener      *net.UnixListener
	clientTimeout time.Duration
	slots         chan struct{}
	serving       sync.WaitGroup
	ctx           context.Context // ends with Close
	end           context.CancelFunc
	remove        sync.Once

	mu      sync.Mutex
	devices []*engine.Device
}

// Listen makes a socket of this process in a directory, which is made if need be, and
// answers on it until Close.
func Listen(dir string) (*Server, error) { return listenWith(dir, clientTimeout) }

// listenWith is Listen with another clientTimeout.
func listenWith(dir string, clientTimeout time.Duration) (*Server, error) {
	d, err := openDirectory(dir, true)
	if err != nil {
		return nil, fmt.Errorf("control socket: %w", err)
	}
	l, name, err := bind(d)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("control socket: %w", err), d.Close())
	}
	s := &Server{
		directory: d, name: name, listener: l, clientTimeout: clientTimeout,
		slots: make(chan struct{}, maxClients),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.serving.Go(s.serve)
	return s, nil
}

// bind makes a socket of this process in a directory, which listens from when it has a
// name that anybody looks for.
func bind(d *os.File) (l *net.UnixListener, name string, err error) {
	// The mode of the socket is that of the file which bind(2) makes (unix(7) does not
	// say so, net/unix/af_unix.c does), less the umask. So there is no moment when
	// others could connect, and no change of mode by name.
	private := func(_, _ string, c syscall.RawConn) (err error) {
		controlErr := c.Control(func(fd uintptr) { err = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(controlErr, err)
	}
	config := net.ListenConfig{Control: private}
	temp := newPrefix + rand.Text()
	listener, err := config.Listen(context.Background(), "unix", within(d, temp))
	if err != nil {
		return nil, "", err
	}
	l = listener.(*net.UnixListener)
	l.SetUnlinkOnClose(false) // its name will be another one
	name = newName(os.Getpid())
	if err := unix.Renameat(int(d.Fd()), temp, int(d.Fd()), name); err != nil {
		return nil, "", errors.Join(err, l.Close(), unix.Unlinkat(int(d.Fd()), temp, 0))
	}
	return l, name, nil
}

// Add has the server answer for a device, too, until the device fails or is closed.
func (s *Server) Add(d *engine.Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices = append(s.devices, d)
}

// Close removes the socket and waits for the answers that are under way. It is
// idempotent.
func (s *Server) Close() (err error) {
	s.end()
	s.remove.Do(func() {
		err = errors.Join(s.listener.Close(), unix.Unlinkat(int(s.directory.Fd()), s.name, 0),
			s.directory.Close())
	})
	s.serving.Wait()
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
		if !ours(conn) {
			conn.Close()
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

// ours reports whether a client is of the same user, or root. Nobody else can enter the
// directory, unless somebody changed its mode after it was looked at.
func ours(conn *net.UnixConn) bool {
	who, err := credentialsOf(conn)
	return err == nil && (who.uid == os.Geteuid() || who.uid == 0)
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
