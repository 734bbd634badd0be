package msg

import (
	"context"
	"net"
	"os"
	"sync"
	"time"
)

// A half is one direction of a stream, for those who call.
type half struct {
	turn  chan struct{} // holds one while somebody reads, or writes
	ready chan struct{} // holds one when who has the turn may go on
	limit deadline
}

func (h *half) init() {
	h.turn, h.ready = make(chan struct{}, 1), make(chan struct{}, 1)
	h.limit.passed = make(chan struct{})
}

// take waits for the turn, until the deadline or Close.
func (h *half) take(s *Stream) error {
	passed := h.limit.channel()
	select {
	case <-s.closed:
		return net.ErrClosed
	case <-passed:
		return os.ErrDeadlineExceeded
	default:
	}
	select {
	case h.turn <- struct{}{}:
		return nil
	case <-passed:
		return os.ErrDeadlineExceeded
	case <-s.closed:
		return net.ErrClosed
	}
}

// give lets the next one go.
func (h *half) give() { <-h.turn }

// A toRead and a toWrite are what who waits for a stream wants.
type (
	toRead  struct{ *Stream }
	toWrite struct{ *Stream }
)

func (w toRead) over() bool  { return w.conn.core.Readable() || w.in.ends(w.Stream) }
func (w toWrite) over() bool { return w.conn.core.Writable() || w.out.ends(w.Stream) }

// ends reports whether the deadline has passed or Close was called.
func (h *half) ends(s *Stream) bool {
	select {
	case <-s.closed:
	case <-h.limit.channel():
	default:
		return false
	}
	return true
}

// wait waits until there may be something, until the deadline or Close. At first it looks for
// completions by itself, as those do who wait for messages.
func (h *half) wait(s *Stream, w goal) error {
	s.conn.endpoint.look(context.Background(), w)
	select {
	case <-h.ready:
		return nil
	case <-h.limit.channel():
		return os.ErrDeadlineExceeded
	case <-s.closed:
		return net.ErrClosed
	}
}

// wake ends a wait. It never blocks.
func (h *half) wake() {
	select {
	case h.ready <- struct{}{}:
	default:
	}
}

// stop leaves no timer behind.
func (h *half) stop() { h.limit.set(time.Time{}) }

// A deadline is a time from when on a channel is closed. Who waits keeps the channel while the
// time is changed: it is another one only after the deadline has passed.
type deadline struct {
	mu     sync.Mutex
	timer  *time.Timer
	passed chan struct{}
	round  int // of the timer that counts
}

// channel is closed when the deadline has passed.
func (d *deadline) channel() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.passed
}

// set changes the deadline. The zero time is never.
func (d *deadline) set(at time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.round++
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
	select {
	case <-d.passed:
		d.passed = make(chan struct{})
	default:
	}
	if at.IsZero() {
		return
	}
	wait := time.Until(at)
	if wait <= 0 {
		close(d.passed)
		return
	}
	round := d.round
	d.timer = time.AfterFunc(wait, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.round == round { // it was not changed while this began
			close(d.passed)
		}
	})
}

// SetDeadline implements net.Conn: that of calls that wait now, and of later ones.
func (s *Stream) SetDeadline(t time.Time) error { return s.setDeadline(t, &s.in, &s.out) }

// SetReadDeadline implements net.Conn.
func (s *Stream) SetReadDeadline(t time.Time) error { return s.setDeadline(t, &s.in) }

// SetWriteDeadline implements net.Conn. A Write whose deadline passes may have sent a part.
func (s *Stream) SetWriteDeadline(t time.Time) error { return s.setDeadline(t, &s.out) }

func (s *Stream) setDeadline(t time.Time, halves ...*half) error {
	e := s.conn.endpoint
	e.mu.Lock() // Close stops timers that were set before, under it
	defer e.mu.Unlock()
	if s.ended {
		return s.opError("set", net.ErrClosed)
	}
	for _, h := range halves {
		h.limit.set(t)
	}
	return nil
}
