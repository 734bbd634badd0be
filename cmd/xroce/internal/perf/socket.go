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

// setupTime bounds what comes before the test: a connection that says nothing is
// not a peer.
const setupTime = 30 * time.Second

// A Socket is the Connector over a TCP connection.
type Socket struct {
	*perftest.Conn
	dev     *engine.Device
	conn    net.Conn
	in      *bufio.Reader
	watched chan struct{} // closed when a watch is over, nil without one
	ctx     context.Context
	release func() bool

	mu   sync.Mutex  // guards what follows
	gone func(error) // called when the peer hangs up during a watch
	err  error       // why a watch failed
}

// NewSocket makes the Connector of a connection, which this end made (dial) or
// accepted. The end of the context ends all waiting on it. Close must be called; it
// leaves the connection open.
func NewSocket(ctx context.Context, dev *engine.Device, conn net.Conn, dial bool) *Socket {
	s := &Socket{dev: dev, conn: conn, in: bufio.NewReader(conn), ctx: ctx}
	s.Conn = perftest.New(socketStream{s}, dial)
	// A deadline that cannot be set is that of a closed connection, on which
	// reading and writing fail by themselves.
	_ = conn.SetDeadline(time.Now().Add(setupTime))
	s.release = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	return s
}

// Close lets go of the context.
func (s *Socket) Close() { s.release() }

// EndSetup ends the setup: from now on the peer may take its time.
func (s *Socket) EndSetup() {
	_ = s.conn.SetDeadline(time.Time{})
	if s.ctx.Err() != nil {
		_ = s.conn.SetDeadline(time.Unix(1, 0))
	}
}

// Connect implements Connector.
func (s *Socket) Connect(ctx context.Context, l Link) error { return connect(ctx, s.dev, l) }

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
	return r.s.in.Read(b)
}

func (r socketStream) Write(b []byte) (int, error) { return r.s.conn.Write(b) }
