package msg

import (
	"context"
	"fmt"

	"xroce/roce"
	"xroce/roce/msg"
)

// A Send is a message that is sent in the background. The caller sets the exported fields and
// leaves it alone until Done.
type Send struct {
	Buffers  [][]byte // the message, in order; not to be changed meanwhile
	Memory   Span     // the message, in the place of Buffers, of memory that is registered
	Tag      uint64
	Protocol msg.Protocol // msg.Auto lets the machine choose
	Level    msg.Level    // when it is complete
	// Fence has it not leave before all that was posted to the peer before is there, as Flush says:
	// nobody who receives it finds that missing. Later messages are behind it.
	Fence   bool
	Active  bool // for the handler of the peer with the number that Handler is
	Handler uint16

	// Results:
	Choice msg.Choice
	Err    error // nil, ErrCancelled, *msg.StatusError of the peer, or why the connection is over

	core     msg.Send
	part     part // of Memory, while it is under way
	conn     *Conn
	progress waiting
}

// PostSend sends a message behind those that were posted before, and does not wait for it, but
// gives its memory a key where it needs one. It returns ErrQueued when s is under way, or why the
// connection is over.
func (c *Conn) PostSend(s *Send) error {
	e := c.endpoint
	e.lock()
	now := e.seen
	if s.Memory.Region != nil || s.Fence || !c.core.LeavesAtOnce(s.Protocol, s.Buffers) {
		now = e.now()
	}
	defer e.finish(now)
	return c.post(now, s)
}

// PostSends is PostSend of each, in their order, at less cost: short ones share frames from the
// first on. It returns how many were posted; the error is that of the next one.
func (c *Conn) PostSends(list []*Send) (n int, err error) {
	now := c.endpoint.begin()
	defer c.endpoint.finish(now)
	for n < len(list) && err == nil {
		if err = c.post(now, list[n]); err == nil {
			n++
		}
	}
	return n, err
}

// begin takes the lock for who posts, and returns the time.
func (e *Endpoint) begin() roce.Time {
	e.lock()
	return e.now()
}

// lock is begin for what may do without the time: to look at the clock costs as much as a good part
// of a short message.
func (e *Endpoint) lock() {
	e.memory.enter()
	e.mu.Lock()
}

// now returns the time. The caller holds mu.
func (e *Endpoint) now() roce.Time {
	e.seen = e.dev.Now()
	return e.seen
}

// finish ends begin. What was posted leaves before anything else is done, and memory that it needs
// is registered here, not on a goroutine that would have to wake first.
func (e *Endpoint) finish(now roce.Time) {
	if e.postWork(now) && e.options.Spin > 0 {
		e.mu.Unlock()
		e.sendPosted()
		e.mu.Lock()
	}
	e.progress(now)
	e.repay()
	e.mu.Unlock()
	e.memory.serve()
	e.memory.leave()
	e.sendPosted()
}

// sendPosted has leave what was posted. Who does not spin has a simulated device, or leaves all of
// that to others.
func (e *Endpoint) sendPosted() {
	if e.options.Spin > 0 {
		for _, n := range e.nics {
			n.dev.SendPosted()
		}
	}
}

// post hands a message to the machine. The caller holds the endpoint's lock.
func (c *Conn) post(now roce.Time, s *Send) error {
	if !s.progress.begin() {
		return ErrQueued
	}
	s.conn = c
	s.core.Pieces, s.core.Tag = s.Buffers, s.Tag
	s.core.Protocol, s.core.Level, s.core.User = s.Protocol, s.Level, s
	s.core.Active, s.core.Handler, s.core.Fence = s.Active, s.Handler, s.Fence
	err := s.hold(c.endpoint)
	if err == nil {
		if err = c.core.Send(now, &s.core); err != nil {
			s.part.end()
		}
	}
	if err != nil {
		s.progress.forgo()
		return err
	}
	if c.trace != nil {
		c.note(TraceEvent{Kind: TracePosted, Tag: s.Tag, Length: s.core.Length()})
	}
	return nil
}

// hold takes the memory of a message that is of a region.
func (s *Send) hold(e *Endpoint) error {
	if s.core.Region = nil; s.Memory.Region == nil {
		return nil
	}
	if len(s.Buffers) > 0 {
		return errBoth
	}
	s.core.Region = &s.part
	return s.part.hold(e, s.Memory, false)
}

// errBoth says that a message is in two places.
var errBoth = fmt.Errorf("%w: a message of Buffers and Memory", msg.ErrInvalid)

func (s *Send) complete(core *msg.Send) {
	s.part.end()
	s.Err, s.Choice = core.Err, core.Choice
	if s.conn.trace != nil && !core.IsFlush() {
		s.conn.note(TraceEvent{
			Kind: TraceSent, Tag: s.Tag, Length: core.Length(), Protocol: s.Choice.Protocol,
			Why: s.Choice.Why, Err: s.Err,
		})
	}
	s.progress.end()
}

// Done returns a channel that is closed when the message is complete. It is for one that was
// posted.
func (s *Send) Done() <-chan struct{} { return s.progress.channel() }

// Wait waits until the message, which was posted, is complete, and returns its error. When the
// context ends first, it returns the error of that, and the message is still under way: its memory
// is not to be changed. Cancel takes it back.
func (s *Send) Wait(ctx context.Context) error {
	if err := s.conn.endpoint.await(ctx, &s.progress); err != nil {
		return err
	}
	return s.Err
}

// A Receive asks for a message in the background. The caller sets the exported fields and
// leaves it alone until Done.
type Receive struct {
	Buffers [][]byte // where it goes
	Memory  Span     // likewise, in the place of Buffers, to memory that is registered
	Tag     uint64
	Mask    uint64 // the bits of the tag that count
	From    *Conn  // nil for any peer; then who it was from

	// Results:
	Length   int          // bytes that are in Buffers, or Memory
	Whole    int          // bytes that the message had
	Protocol msg.Protocol // how it came, see Receive of roce/msg
	Err      error        // nil, *TruncatedError, ErrCancelled, or why the connection is over

	core     msg.Receive
	part     part // of Memory, while it is under way
	endpoint *Endpoint
	progress waiting
}

// PostReceive asks for a message, and does not wait for it. It returns ErrQueued when r is under
// way, or why the connection it is for is over.
func (e *Endpoint) PostReceive(r *Receive) error {
	now := e.begin()
	defer e.finish(now)
	return e.post(now, r)
}

// PostReceives is PostReceive of each, in their order, at less cost. It returns how many were
// posted; the error is that of the next one.
func (e *Endpoint) PostReceives(list []*Receive) (n int, err error) {
	now := e.begin()
	defer e.finish(now)
	for n < len(list) && err == nil {
		if err = e.post(now, list[n]); err == nil {
			n++
		}
	}
	return n, err
}

// post hands a receive to the machine. The caller holds mu.
func (e *Endpoint) post(now roce.Time, r *Receive) error {
	if !r.progress.begin() {
		return ErrQueued
	}
	r.core.Tag, r.core.Mask, r.core.From = r.Tag, r.Mask, nil
	if r.From != nil {
		r.core.From = r.From.core
	}
	return r.post(e, func() error { return e.machine.Receive(now, &r.core) })
}

// post hands a receive to the machine, by a function, with where its message goes.
func (r *Receive) post(e *Endpoint, to func() error) error {
	r.endpoint = e
	r.core.Pieces, r.core.Region, r.core.User = r.Buffers, nil, r
	err := r.hold(e)
	if err == nil {
		if err = to(); err != nil {
			r.part.end()
		}
	}
	if err != nil {
		r.progress.forgo()
	}
	return err
}

// hold takes the memory of a receive that is of a region.
func (r *Receive) hold(e *Endpoint) error {
	if r.Memory.Region == nil {
		return nil
	}
	if len(r.Buffers) > 0 {
		return errBoth
	}
	r.core.Region = &r.part
	return r.part.hold(e, r.Memory, true)
}

func (r *Receive) complete(core *msg.Receive) {
	r.part.end()
	r.Err, r.Length, r.Whole = core.Err, core.Length, core.Whole
	if core.Truncated {
		r.Err = &TruncatedError{Length: r.Length, Whole: r.Whole}
	}
	r.Tag, r.Protocol = core.SentTag, core.Protocol
	if core.Source != nil {
		if r.From = core.Source.User.(*Conn); r.From.trace != nil {
			r.From.note(TraceEvent{
				Kind: TraceReceived, Tag: r.Tag, Length: r.Whole, Protocol: r.Protocol, Err: r.Err,
			})
		}
	}
	r.progress.end()
}

// Done returns a channel that is closed when the message is there. It is for one that was posted.
func (r *Receive) Done() <-chan struct{} { return r.progress.channel() }

// Wait waits for the message, which was posted, and returns its error. When the context ends first
// the receive is taken back, as Cancel does, and it returns the error of the context. For one that
// has a message already, which is on its way, it waits for Options.CancelTimeout at most: nil, or
// ErrTruncated, says that the message is here, an error that wraps that of the context that the
// connection has ended. So the memory is the caller's when it returns.
func (r *Receive) Wait(ctx context.Context) error {
	e := r.endpoint
	err := e.await(ctx, &r.progress)
	if err == nil {
		return r.Err
	}
	r.Cancel()
	e.sleepOrEnd(&r.progress, func() *msg.Conn { return r.core.Source })
	return outcome(err, r.Err)
}
