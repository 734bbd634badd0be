package msg

import (
	"context"
	"errors"
	"net/netip"

	"xroce/engine"
	"xroce/engine/cm"
	"xroce/roce"
	"xroce/roce/msg"
)

// A Conn is a peer of an endpoint. Its methods are safe for concurrent use.
type Conn struct {
	endpoint *Endpoint
	cm       *cm.Conn
	pd       *engine.PD // of its own: see registrar.answer
	qp       *engine.QP
	control  *engine.MR // of the receives
	sge      [1]roce.SGE
	scratch  [slotLen]byte
	service  msg.Service
	stream   *Stream // of one that carries bytes

	// Under the endpoint's lock:
	core  *msg.Conn
	early []roce.Completion // that came before core was there
	err   error
	done  chan struct{}

	actives     []*delivery  // that wait for their handlers, in order
	activeBytes int          // of these
	injections  []*injection // that are not in use
	injecting   int          // that are
}

// prepare makes the receives of a queue pair and makes the connection known.
func (c *Conn) prepare(qp *engine.QP) (err error) {
	e := c.endpoint
	n := e.receives()
	if c.control, err = e.dev.AllocMR(c.pd, n*slotLen, recvAccess); err != nil {
		return err
	}
	c.qp = qp
	for i := range n {
		if err := c.receive(i); err != nil {
			return errors.Join(err, c.control.Deregister())
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err != nil {
		return errors.Join(e.err, c.control.Deregister())
	}
	e.conns[qp.QPN()] = c
	return nil
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
	if core.User, c.core = c, core; c.service == msg.ServiceStream {
		c.stream = newStream(c)
		e.streams[c.stream] = struct{}{}
	}
	for i := range c.early {
		c.take(now, &c.early[i])
	}
	c.early = nil
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

// watch has the connection end when the peer has hung up. The service does it, behind what had
// come before: only there may completions be taken on every device.
func (c *Conn) watch() {
	select {
	case <-c.done:
		return
	case <-c.cm.Done():
	}
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hangUps = append(e.hangUps, c)
	e.handle.Wake()
}

// over is told that the connection has ended. The caller holds the endpoint's lock.
func (c *Conn) over(err error) {
	c.err = err
	delete(c.endpoint.conns, c.qp.QPN())
	close(c.done)
	if c.stream != nil && c.stream.hungUp {
		c.endpoint.hungUp--
		c.endpoint.changed.Broadcast()
	}
	c.endpoint.leaving.Go(c.dismantle)
}

// dismantle gives back what is of the device, after the time-wait, or when the endpoint is closed
// and has waited for long enough.
func (c *Conn) dismantle() {
	c.cm.Close()
	select {
	case <-c.cm.Released():
	case <-c.endpoint.hurry:
		c.qp.Close()
	}
	_ = c.control.Deregister() // no window is bound to it: it cannot fail
	c.closePD()
	c.endpoint.leave()
}

// closePD closes the protection domain of a connection that is over, unless memory or a queue pair
// is of it: then who gives back the last of these calls again.
func (c *Conn) closePD() { _ = c.pd.Close() }

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
