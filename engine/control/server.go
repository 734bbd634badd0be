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
	"xroce/engine/internal/roster"
)

// clientTimeout is how long a client may take to ask, and to take its answer when that is ready.
const clientTimeout = 2 * time.Second

// endTime is how long readers of captures may take what is left when the program ends: it is held
// up for no longer by one that has stopped.
const endTime = time.Second

// A Server answers for the devices of this process.
type Server struct {
	directory     *os.File
	name          string // of the socket
	listener      *net.UnixListener
	clientTimeout time.Duration
	endTime       time.Duration             // endTime, but for tests
	marshal       func(any) ([]byte, error) // json.Marshal, but for tests
	lobby         lobby
	slots         chan struct{}
	captures      chan struct{}
	serving       sync.WaitGroup
	ctx           context.Context // ends with Close
	end           context.CancelFunc
	patience      context.Context // ends when captures have had endTime after that
	cut           context.CancelFunc
	remove        sync.Once
	devices       roster.Roster
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
		directory: d, name: name, listener: l, clientTimeout: clientTimeout, endTime: endTime,
		marshal: json.Marshal, slots: make(chan struct{}, maxClients),
		captures: make(chan struct{}, maxCaptures),
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.patience, s.cut = context.WithCancel(context.Background())
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

// Add has the server answer for a device, too, until the device fails or is closed. It is known by
// the name of its interface. Where another device has that, as with several on one interface, it
// is eth0#2, or the next number that is free, for as long as the device lives.
func (s *Server) Add(d *engine.Device) { s.devices.Add(d) }

// Close removes the socket and ends what is under way: answers at once, and captures when their
// readers have what waits for them, or a second later. It is idempotent.
func (s *Server) Close() (err error) {
	s.remove.Do(func() {
		// First the name: whom we hang up on may look whether there is anybody to be asked again.
		err = errors.Join(unix.Unlinkat(int(s.directory.Fd()), s.name, 0), s.listener.Close(),
			s.directory.Close())
	})
	s.end()
	defer time.AfterFunc(s.endTime, s.cut).Stop()
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
		who, err := credentialsOf(conn)
		if err != nil || !who.ours() {
			conn.Close()
			continue
		}
		v := s.lobby.enter(conn, who.pid)
		s.serving.Go(func() { s.serveOne(conn, v) })
	}
}

// serveOne serves one client, whose turn comes when it has asked and there is a slot.
func (s *Server) serveOne(conn net.Conn, v *visitor) {
	defer conn.Close()
	keep := context.AfterFunc(s.ctx, func() { conn.Close() })
	defer keep()
	q, err := s.request(conn)
	s.lobby.asks(v)
	select {
	case s.slots <- struct{}{}:
	case <-v.gone:
		return
	case <-s.ctx.Done():
		return
	}
	s.lobby.leave(v)
	// Whom the answer does not reach knows that.
	stream, err := s.answer(conn, &q, err)
	<-s.slots
	if stream != nil {
		stream(conn, keep() && err == nil) // which ends by itself
	}
}

// ours reports whether a client is of the same user, or root. Nobody else can enter the
// directory, unless somebody changed its mode after it was looked at.
func (c credentials) ours() bool { return c.uid == os.Geteuid() || c.uid == 0 }

// request reads what a client asks for.
func (s *Server) request(conn net.Conn) (q Request, err error) {
	if err := conn.SetDeadline(time.Now().Add(s.clientTimeout)); err != nil {
		return q, err
	}
	if err := json.NewDecoder(io.LimitReader(conn, maxRequest)).Decode(&q); err != nil {
		return q, fmt.Errorf("not a request: %w", err)
	}
	return q, q.check()
}

// answer serves one client, unless its request was none. What it returns is to be called
// afterwards, if it is not nil.
func (s *Server) answer(
	conn net.Conn, q *Request, err error,
) (stream func(conn net.Conn, answered bool), _ error) {
	a := Answer{Version: version, PID: os.Getpid(), Comm: comm()}
	switch {
	case err != nil:
	case q.Get == getPackets:
		stream, err = s.packets(q)
	default:
		err = s.look(q, &a)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return stream, s.tell(conn, &a)
}

// tell sends an answer. The client's time begins when there is something to take: that looking
// waited for a busy device, and that a long answer takes a while to write down, is no doing of its.
func (s *Server) tell(conn net.Conn, a *Answer) error {
	line, err := s.marshal(a)
	if err != nil {
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(s.clientTimeout)); err != nil {
		return err
	}
	_, err = conn.Write(append(line, '\n'))
	return err
}

// look looks at the devices that are open.
func (s *Server) look(q *Request, a *Answer) error {
	a.Devices = []engine.Resources{}
	for _, d := range s.devices.Open() {
		if q.CountQPs {
			d.CountQPs(q.Rows)
		}
		if q.CountNoQPs {
			d.CountQPsTogether()
		}
		if q.Get == getStatistics {
			counters, err := d.Counters()
			if errors.Is(err, engine.ErrClosed) {
				continue
			}
			if err != nil {
				return fmt.Errorf("%s: %w", d.Name(), err)
			}
			a.Counters = append(a.Counters, counters)
		}
		r := d.Resources(q.Rows)
		r.Device = d.Name()
		if !q.Keys {
			r.HideKeys()
		}
		a.Devices = append(a.Devices, r)
	}
	return nil
}

// comm is the name of this process, as the kernel has it.
func comm() string {
	b, err := os.ReadFile("/proc/self/comm")
	if err != nil {
		return "xroce"
	}
	return strings.TrimSpace(string(b))
}
