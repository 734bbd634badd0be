package msg

import (
	"context"
	"errors"
	"fmt"
	"time"

	"xroce/roce/msg"
)

// ErrCancelled says that a message or a receive was taken back by the application.
var ErrCancelled = msg.ErrCancelled

// ErrCancelTimeout says that a connection was ended because a message of which the context had
// ended was on its way for longer than Options.CancelTimeout: the memory of a message is free when
// nobody can touch it any more, and only the peer, or this, sees to that.
var ErrCancelTimeout = errors.New("msg: a message was under way long after its context had ended")

// ErrTruncated says that a message is longer than its receive: the first part of it was received.
// The error is a *TruncatedError.
var ErrTruncated = errors.New("msg: the message is longer than its receive")

// A TruncatedError says how much of a message had room. It is an ErrTruncated.
type TruncatedError struct {
	Length int // bytes that were received
	Whole  int // bytes that the message had
}

// Error implements error.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%v: %d of %d bytes", ErrTruncated, e.Length, e.Whole)
}

// Is reports whether the target is ErrTruncated.
func (e *TruncatedError) Is(target error) bool { return target == ErrTruncated }

// Cancel takes a message back that was posted. It reports false when that is too late: the message
// is complete, it is in a slot of the peer, or the peer is taking it. Else it is complete soon,
// when the peer has answered if it was announced there, and Err says what came of it:
//
//	ErrCancelled  nobody has received it, or will
//	nil           the peer had a receive for it before it heard of this: it is received
//
// It does not wait: see Wait and Done. Until then the memory is not to be changed.
func (s *Send) Cancel() bool {
	if s.conn == nil {
		return false
	}
	e := s.conn.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if s.progress.over() {
		return false
	}
	cancelled := e.machine.CancelSend(e.dev.Now(), &s.core)
	e.progress(e.dev.Now())
	return cancelled
}

// Cancel takes a receive back that was posted. It reports whether there was no message for it yet:
// it is complete then, with ErrCancelled. Else it completes as if nothing had been.
func (r *Receive) Cancel() bool {
	e := r.endpoint
	if e == nil {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if r.progress.over() {
		return false
	}
	cancelled := e.machine.Cancel(&r.core)
	e.progress(e.dev.Now())
	return cancelled
}

// sleepOrEnd waits until something is complete. When that takes longer than CancelTimeout it ends
// the connection that it is on, which is asked for with mu held: then no packet of the peer
// touches its memory.
func (e *Endpoint) sleepOrEnd(w *waiting, of func() *msg.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), e.options.CancelTimeout)
	defer cancel()
	if w.sleep(ctx) == nil {
		return
	}
	e.mu.Lock()
	if c := of(); c != nil && !w.over() {
		c.Abort(e.dev.Now(), ErrCancelTimeout)
	}
	e.progress(e.dev.Now())
	e.mu.Unlock()
	_ = w.sleep(context.Background()) // for the device, which takes the key out of use
}

// outcome is what came of a message of which the context has ended, with the error ended, and which
// is complete with err.
func outcome(ended, err error) error {
	switch {
	case err == nil, errors.Is(err, ErrTruncated):
		return err
	case errors.Is(err, ErrCancelled):
		return ended
	}
	return fmt.Errorf("%w: %w", ended, err)
}

// defaultCancelTimeout is long for a peer that is there, and short for who waits.
const defaultCancelTimeout = 5 * time.Second
