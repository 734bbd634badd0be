package msg

import (
	"context"

	"xroce/roce/msg"
)

// A Send is a message that is sent in the background. The caller sets the exported fields and
// leaves it alone until Done.
type Send struct {
	Buffers  [][]byte // the message, in order; not to be changed meanwhile
	Tag      uint64
	Protocol msg.Protocol // msg.Auto lets the machine choose
	Level    msg.Level    // when it is complete

	// Results:
	Choice msg.Choice
	Err    error

	core msg.Send
	done chan struct{}
}

// PostSend sends a message behind those that were posted before, and does not wait.
func (c *Conn) PostSend(s *Send) error {
	e := c.endpoint
	s.done = make(chan struct{})
	s.core.Pieces, s.core.Tag = s.Buffers, s.Tag
	s.core.Protocol, s.core.Level, s.core.User = s.Protocol, s.Level, s
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := c.core.Send(e.dev.Now(), &s.core); err != nil {
		return err
	}
	e.progress()
	return nil
}

func (s *Send) complete(core *msg.Send) {
	s.Err, s.Choice = core.Err, core.Choice
	close(s.done)
}

// Done returns a channel that is closed when the message is complete.
func (s *Send) Done() <-chan struct{} { return s.done }

// Wait waits until the message is complete, and returns its error.
func (s *Send) Wait(ctx context.Context) error {
	select {
	case <-s.done:
		return s.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A Receive asks for a message in the background. The caller sets the exported fields and
// leaves it alone until Done.
type Receive struct {
	Buffers [][]byte // where it goes
	Tag     uint64
	Mask    uint64 // the bits of the tag that count
	From    *Conn  // nil for any peer; then who it was from

	// Results:
	Length   int // bytes that are in Buffers
	Whole    int // bytes that the message had
	Protocol msg.Protocol
	Err      error

	core msg.Receive
	done chan struct{}
}

// PostReceive asks for a message, and does not wait.
func (e *Endpoint) PostReceive(r *Receive) error {
	r.done = make(chan struct{})
	r.core.Pieces, r.core.Tag, r.core.Mask, r.core.User = r.Buffers, r.Tag, r.Mask, r
	r.core.From = nil
	if r.From != nil {
		r.core.From = r.From.core
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if err := e.machine.Receive(e.dev.Now(), &r.core); err != nil {
		return err
	}
	e.progress()
	return nil
}

func (r *Receive) complete(core *msg.Receive) {
	r.Err, r.Length, r.Whole = core.Err, core.Length, core.Whole
	r.Tag, r.Protocol = core.SentTag, core.Protocol
	if core.Source != nil {
		r.From = core.Source.User.(*Conn)
	}
	close(r.done)
}

// Done returns a channel that is closed when the message is there.
func (r *Receive) Done() <-chan struct{} { return r.done }

// Wait waits for the message, and returns its error. When the context ends first the receive
// is taken back, or has a message all the same.
func (r *Receive) Wait(ctx context.Context) error {
	select {
	case <-r.done:
		return r.Err
	case <-ctx.Done():
		return ctx.Err()
	}
}
