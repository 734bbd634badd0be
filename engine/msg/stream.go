package msg

import (
	"fmt"
	"io"
	"net"
	"os"
	"syscall"

	"xroce/roce"
)

// A Stream is a connection that carries bytes: a net.Conn. Its methods are safe for concurrent
// use.
//
// A byte is copied once into the memory that goes to the peer, and once out of the memory where
// it arrives, by who calls: nothing is kept beside the slots of both ends. So Write returns when
// the bytes are in slots, and waits for a peer that does not read.
//
// Errors are *net.OpError, but for io.EOF. They wrap os.ErrDeadlineExceeded, net.ErrClosed after
// Close, syscall.EPIPE of a Write after CloseWrite, or else syscall.ECONNRESET and why the
// connection is over.
type Stream struct {
	conn   *Conn
	in     half
	out    half
	closed chan struct{} // by Close

	// Under the endpoint's lock:
	ended     bool // Close was called
	halfEnded bool // CloseWrite was called
	hungUp    bool // and the endpoint counts it
}

var (
	_ net.Conn      = (*Stream)(nil)
	_ io.ReaderFrom = (*Stream)(nil)
	_ io.WriterTo   = (*Stream)(nil)
)

func newStream(c *Conn) *Stream {
	s := &Stream{conn: c, closed: make(chan struct{})}
	s.in.init()
	s.out.init()
	return s
}

// wake has those go on who wait for bytes or for room. The caller holds the endpoint's lock.
func (s *Stream) wake() {
	if s.conn.core.Readable() {
		s.in.wake()
	}
	if s.conn.core.Writable() {
		s.out.wake()
	}
}

// LocalAddr implements net.Conn.
func (s *Stream) LocalAddr() net.Addr { return Addr(s.conn.LocalAddr()) }

// RemoteAddr implements net.Conn.
func (s *Stream) RemoteAddr() net.Addr { return Addr(s.conn.RemoteAddr()) }

// Read takes bytes of the peer, as many as there are and have room, at least one. The error is
// io.EOF when the peer has closed its end and all before that was read.
func (s *Stream) Read(p []byte) (n int, err error) {
	if err := s.in.take(s); err != nil {
		return 0, s.opError("read", err)
	}
	defer s.in.give()
	if len(p) == 0 {
		return 0, nil
	}
	b, err := s.next()
	if err != nil {
		return 0, s.opError("read", err)
	}
	for b != nil {
		m := copy(p[n:], b)
		n += m
		b = s.consume(m, n < len(p))
	}
	return n, nil
}

// Write sends bytes. When it returns all of them are on their way, or n and an error says why
// not.
func (s *Stream) Write(p []byte) (n int, err error) {
	if err := s.out.take(s); err != nil {
		return 0, s.opError("write", err)
	}
	defer s.out.give()
	var b []byte
	for n < len(p) {
		if b == nil {
			if b, err = s.reserve(len(p)-n, false); err != nil {
				return n, s.opError("write", err)
			}
		}
		m := copy(b, p[n:])
		if b, err = s.commit(m, len(p)-n-m); err != nil {
			return n, s.opError("write", err)
		}
		n += m
	}
	return n, nil
}

// next borrows the next bytes of the peer, and waits for some.
func (s *Stream) next() ([]byte, error) {
	e := s.conn.endpoint
	for {
		e.mu.Lock()
		b, err := s.conn.core.Peek()
		if b != nil {
			e.lends++
		}
		e.mu.Unlock()
		if b != nil || err != nil {
			return b, err
		}
		if err := s.in.wait(s, toRead{s}); err != nil {
			return nil, err
		}
	}
}

// consume gives back what was borrowed, of which n bytes are read; with more, it borrows what is
// there beyond that.
func (s *Stream) consume(n int, more bool) (b []byte) {
	e := s.conn.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.dev.Now()
	s.conn.core.Consume(now, n)
	if more {
		b, _ = s.conn.core.Peek() // who reads again is told the error
	}
	if b == nil {
		e.returned()
	}
	e.progress(now)
	return b
}

// reserve borrows memory for n bytes to the peer, or fewer, and waits for some; or a whole slot.
func (s *Stream) reserve(n int, whole bool) ([]byte, error) {
	e := s.conn.endpoint
	for {
		e.mu.Lock()
		b, err := s.lend(n, whole)
		switch {
		case b != nil:
			e.lends++
		case err == nil:
			e.progress(e.dev.Now()) // a frame that was not full goes
		}
		err = s.writeError(err)
		e.mu.Unlock()
		if b != nil || err != nil {
			return b, err
		}
		if err := s.out.wait(s, toWrite{s}); err != nil {
			return nil, err
		}
	}
}

func (s *Stream) lend(n int, whole bool) ([]byte, error) {
	now := s.conn.endpoint.dev.Now()
	if whole {
		return s.conn.core.ReserveSlot(now, n)
	}
	return s.conn.core.Reserve(now, n)
}

// commit sends n bytes of what was borrowed; with more to come, it borrows memory for that, if
// there is some at once.
func (s *Stream) commit(n, more int) (b []byte, err error) {
	e := s.conn.endpoint
	defer e.sendPosted()
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.dev.Now()
	if err = s.conn.core.Commit(now, n); err == nil && more > 0 {
		b, _ = s.conn.core.Reserve(now, more) // who reserves again is told the error
	}
	if b == nil {
		e.returned()
	}
	e.progress(now)
	return b, s.writeError(err)
}

// writeError is an error of the machine, told from that of a direction that we have ended. The
// caller holds the endpoint's lock.
func (s *Stream) writeError(err error) error {
	if err == ErrClosed && s.halfEnded && s.conn.endpoint.err == nil {
		return syscall.EPIPE
	}
	return err
}

// returned counts memory that is not borrowed any more. The caller holds mu.
func (e *Endpoint) returned() {
	if e.lends--; e.lends == 0 && e.ending {
		e.changed.Broadcast()
	}
}

// opError is an error as those expect it who call methods of a net.Conn.
func (s *Stream) opError(op string, err error) error {
	switch {
	case err == io.EOF:
		return err
	case s.isClosed():
		err = net.ErrClosed
	case err == os.ErrDeadlineExceeded, err == net.ErrClosed, err == syscall.EPIPE:
	default:
		err = fmt.Errorf("%w: %w", syscall.ECONNRESET, err)
	}
	return &net.OpError{
		Op: op, Net: network, Source: s.LocalAddr(), Addr: s.RemoteAddr(), Err: err,
	}
}

func (s *Stream) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// CloseWrite ends our direction: the peer reads io.EOF after all that was written. A ReadFrom
// that is under way ends with the next bytes that it reads.
func (s *Stream) CloseWrite() error {
	e := s.conn.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	core := s.conn.core
	switch {
	case s.ended:
		return s.opError("close", net.ErrClosed)
	case core.Err() != nil && !s.halfEnded:
		return s.opError("close", core.Err())
	}
	s.halfEnded = true
	core.Close(e.dev.Now())
	s.out.wake()
	e.progress(e.dev.Now())
	return nil
}

// Close ends both directions, as that of a TCP connection does: calls that wait return
// net.ErrClosed, what arrived is lost, what was written is brought to the peer in the background,
// for Options.Linger at most, and the peer can read all of it. Close does not wait for that;
// Endpoint.Close does.
func (s *Stream) Close() error {
	e := s.conn.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.ended {
		return s.opError("close", net.ErrClosed)
	}
	s.ended = true
	close(s.closed)
	s.in.stop()
	s.out.stop()
	delete(e.streams, s)
	if s.conn.core.Err() == nil {
		s.hungUp = true
		e.hungUp++
	}
	s.conn.core.HangUp(e.dev.Now(), roce.Time(e.options.Linger))
	e.progress(e.dev.Now())
	return nil
}
