package perf

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync"
	"time"

	"xroce/engine"
	"xroce/engine/oob"
	"xroce/engine/oob/perftest"
)

// A Socket is the Connector over a TCP connection.
type Socket struct {
	*perftest.Conn
	dev     *engine.Device
	conn    net.Conn
	in      *bufio.Reader
	watched chan struct{} // closed when a watch is over, nil without one

	mu          sync.Mutex  // guards what follows
	gone        func(error) // called when the peer hangs up during a watch
	err         error       // why a watch failed
	interrupted error       // why no step is waited for any more
}

// NewSocket makes the Connector of a connection, which this end made (dial) or
// accepted. It leaves the connection open, and its deadline when interrupted.
func NewSocket(dev *engine.Device, conn net.Conn, dial bool) *Socket {
	s := &Socket{dev: dev, conn: conn, in: bufio.NewReader(conn)}
	s.Conn = perftest.New(socketStream{s}, dial)
	return s
}

// Connect implements Connector.
func (s *Socket) Connect(ctx context.Context, l Link) error { return connect(ctx, s.dev, l) }

// Interrupt implements Connector.
func (s *Socket) Interrupt(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.interrupted == nil {
		s.interrupted = err
	}
	// A deadline that cannot be set is that of a closed connection, on which
	// reading and writing fail by themselves.
	_ = s.conn.SetDeadline(time.Unix(1, 0))
}

// interruption is why reading or writing failed with err.
func (s *Socket) interruption(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.interrupted != nil {
		return s.interrupted
	}
	return err
}

// Watch implements Connector. One watch lasts until the peer speaks, over several
// loops if need be.
func (s *Socket) Watch(gone func(error)) {
	if s.watched == nil {
		s.watched = make(chan struct{})
		go s.listen(s.watched)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone = gone; s.err != nil {
		gone(s.err)
	}
}

// listen waits until the peer speaks or hangs up.
func (s *Socket) listen(watched chan<- struct{}) {
	defer close(watched)
	_, err := s.in.Peek(1)
	if err == nil {
		return
	}
	if oob.HungUp(err) {
		err = fmt.Errorf("the peer closed the connection in the middle of the test: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err = err; s.gone != nil {
		s.gone(err)
	}
}

// Heard implements Connector.
func (s *Socket) Heard() bool {
	select {
	case <-s.watched:
		return true
	default:
		return false
	}
}

// A socketStream is what the exchange reads and writes. Reading waits for the end
// of a watch, which is when the peer speaks.
type socketStream struct{ s *Socket }

func (r socketStream) Read(b []byte) (int, error) {
	if r.s.watched != nil {
		<-r.s.watched
		r.s.watched = nil
	}
	n, err := r.s.in.Read(b)
	return n, r.s.interruption(err)
}

func (r socketStream) Write(b []byte) (int, error) {
	n, err := r.s.conn.Write(b)
	return n, r.s.interruption(err)
}
