package msg

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/msg"
)

// A Conn is a peer of an endpoint. Its methods are safe for concurrent use.
type Conn struct {
	endpoint *Endpoint
	*rail                 // the first one
	pds      []*engine.PD // of its own, a device each: see Endpoint.provide
	service  msg.Service
	stream   *Stream   // of one that carries bytes
	session  msg.Token // of several rails

	// Under the endpoint's lock:
	core  *msg.Conn
	rails []*rail                     // all that there were, until they are given back
	past  [msg.MaxRails]msg.RailUsage // of those that were
	err   error
	done  chan struct{}
	trace *trace // nil unless it was started

	actives     []*delivery  // that wait for their handlers, in order
	activeBytes int          // of these
	injections  []*injection // that are not in use
	injecting   int          // that are
	imports     map[uint64]*importing
	lastImport  uint64

	shared atomic.Bool // it may have keys of exports
}

// open joins the connection with the machine, now that both hellos are known.
func (c *Conn) open(ours, theirs *msg.Hello) error {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return e.err
	}
	now := e.dev.Now()
	core, err := e.machine.Open(now, ours, theirs, e.options.Depth)
	if err != nil {
		return err
	}
	e.conns[c] = struct{}{}
	if core.User, c.core = c, core; c.service == msg.ServiceStream {
		c.stream = newStream(c)
		e.streams[c.stream] = struct{}{}
	}
	c.begin(now, core.First())
	e.progress(e.dev.Now())
	return nil
}

// start lets the machine send.
func (c *Conn) start() {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	c.core.Start()
	e.progress(e.dev.Now())
}

// over is told that the connection has ended. The caller holds the endpoint's lock.
func (c *Conn) over(err error) {
	c.err = err
	delete(c.endpoint.conns, c)
	for _, r := range c.rails {
		r.leave()
	}
	close(c.done)
	c.failImports()
	if c.shared.Load() {
		c.endpoint.leaving.Go(func() {
			c.unshare()
			c.closePDs() // unless others are later
		})
	}
	if c.stream != nil && c.stream.hungUp {
		c.endpoint.hungUp--
		c.endpoint.changed.Broadcast()
	}
}

// closePDs closes the protection domains of a connection that is over, but for those that memory
// or a queue pair is of: then who gives back the last of these calls again.
func (c *Conn) closePDs() {
	for _, pd := range c.pds {
		_ = pd.Close()
	}
}

// RemoteAddr returns the address and port of the peer.
func (c *Conn) RemoteAddr() netip.AddrPort { return c.cm.RemoteAddr() }

// LocalAddr returns ours.
func (c *Conn) LocalAddr() netip.AddrPort { return c.cm.LocalAddr() }

// Extensions returns those of the transport that both ends use.
func (c *Conn) Extensions() roce.Extensions { return c.cm.Extensions() }

// Done returns a channel that is closed when the connection is over; Err says why.
func (c *Conn) Done() <-chan struct{} { return c.done }

// Err says why the connection is over, nil while it is not: ErrClosed when both ends have
// closed it.
func (c *Conn) Err() error {
	select {
	case <-c.done:
		return c.err
	default:
		return nil
	}
}

// Send sends a message and returns when its memory may be used again. When the context ends first
// the message is taken back, as Send.Cancel does, and Send waits for what comes of that, for
// Options.CancelTimeout at most: nil says that the message was sent all the same, an error
// that wraps that of the context that nobody has received it, or that the connection has ended.
func (c *Conn) Send(ctx context.Context, data []byte) error {
	return c.send(ctx, &Send{Buffers: [][]byte{data}})
}

func (c *Conn) send(ctx context.Context, s *Send) error {
	if err := c.PostSend(s); err != nil {
		return err
	}
	err := c.endpoint.await(ctx, &s.progress)
	if err == nil {
		return s.Err
	}
	s.Cancel()
	c.endpoint.sleepOrEnd(&s.progress, func() *msg.Conn { return c.core })
	return outcome(err, s.Err)
}

// Receive takes the next message of the peer into buf, and returns how many bytes of it are there.
// One that is longer is cut off: the error is ErrTruncated then. A context that ends is as it is
// for Receive.Wait.
func (c *Conn) Receive(ctx context.Context, buf []byte) (int, error) {
	r := &Receive{Buffers: [][]byte{buf}, From: c}
	if err := c.endpoint.PostReceive(r); err != nil {
		return 0, err
	}
	err := r.Wait(ctx)
	return r.Length, err
}

// Close sends what was posted, tells the peer, and waits until the peer has closed, too, or
// the context ends, which ends the connection at once.
func (c *Conn) Close(ctx context.Context) error {
	e := c.endpoint
	e.mu.Lock()
	c.core.Close(e.dev.Now())
	e.progress(e.dev.Now())
	e.mu.Unlock()
	select {
	case <-c.done:
	case <-ctx.Done():
		e.mu.Lock()
		c.core.Abort(e.dev.Now(), ctx.Err())
		e.progress(e.dev.Now())
		e.mu.Unlock()
		<-c.done
	}
	if errors.Is(c.err, ErrClosed) {
		return nil
	}
	return c.err
}

// Abort ends the connection at once and waits for nobody: what is under way fails with ErrClosed,
// and with an error of its own at the peer, which is told that it is over. Messages that the
// peer had sent, and that nobody has received, can still be received if they are here. Each Send
// and Receive tells when its memory is the caller's again. It is idempotent.
func (c *Conn) Abort() {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	c.core.Abort(e.dev.Now(), ErrClosed)
	e.progress(e.dev.Now())
}

// drop ends a connection that nobody has accepted.
func (c *Conn) drop() {
	if c.stream != nil {
		_ = c.stream.Close() // it was not closed before
		return
	}
	c.Abort()
}
