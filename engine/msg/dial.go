package msg

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"xroce/engine/cm"
	"xroce/roce/mem"
	"xroce/roce/msg"
)

// recvAccess is that of the memory of receives.
const recvAccess = mem.LocalWrite

// newConn makes a connection without a peer.
func (e *Endpoint) newConn(service msg.Service) *Conn {
	return &Conn{
		endpoint: e, service: service, pd: e.dev.AllocPD(), done: make(chan struct{}),
	}
}

// hello is what this endpoint says of itself.
func (e *Endpoint) hello(service msg.Service) *msg.Hello {
	c := &e.options.Machine
	return &msg.Hello{
		Version: msg.Version, MinVersion: msg.MinVersion,
		Capabilities: msg.CapabilityGet | msg.CapabilityPut | msg.CapabilityProvision,
		Service:      service, Payload: uint32(c.EagerLimit), Slots: uint16(c.Slots),
		Rendezvous: uint16(c.Rendezvous), Receives: uint32(e.receives()),
	}
}

// setup is our end of a connection.
func (e *Endpoint) setup(c *Conn, ours *msg.Hello) cm.Setup {
	s := cm.Setup{
		PD: c.pd, Init: e.init(), Access: access, Prepare: c.prepare,
		Private: make([]byte, msg.HelloLen),
	}
	ours.Put(s.Private)
	return s
}

// Dial connects to an endpoint that listens. The error wraps that of cm.Manager.Dial; when the peer
// refuses and says why, also a *msg.StatusError of package roce/msg, which is ErrVersion,
// ErrCapability or ErrService of that package if it is for that.
func (e *Endpoint) Dial(ctx context.Context, to netip.AddrPort) (*Conn, error) {
	c, err := e.dial(ctx, to, msg.ServiceEndpoint)
	if err != nil {
		return nil, fmt.Errorf("msg: %v: %w", to, err)
	}
	return c, nil
}

func (e *Endpoint) dial(
	ctx context.Context, to netip.AddrPort, service msg.Service,
) (*Conn, error) {
	ctx, settled, err := e.attempt(ctx)
	if err != nil {
		return nil, err
	}
	defer settled()
	c := e.newConn(service)
	ours := e.hello(service)
	if c.cm, err = e.manager.Dial(ctx, to, e.setup(c, ours)); err != nil {
		c.forget()
		return nil, e.refused(ours, err)
	}
	theirs, err := e.hear(ours, c.cm.Private())
	if err == nil {
		err = c.open(ours, &theirs)
	}
	if err != nil {
		c.cm.Close()
		c.forget()
		return nil, err
	}
	c.start()
	go c.watch()
	return c, nil
}

// hear judges what a peer says of itself.
func (e *Endpoint) hear(ours *msg.Hello, private []byte) (msg.Hello, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.machine.Hear(ours, private)
}

// refused adds to the error of a connection that the peer rejected why it did, if it said so.
func (e *Endpoint) refused(ours *msg.Hello, err error) error {
	var rejected *cm.RejectedError
	if !errors.As(err, &rejected) {
		return err
	}
	why := new(msg.StatusError)
	if _, said := e.hear(ours, rejected.Private); errors.As(said, &why) {
		return fmt.Errorf("%w: %w", err, why)
	}
	return err
}

// attempt makes room for a connection. The context ends with the endpoint, too, which waits for
// settled.
func (e *Endpoint) attempt(
	ctx context.Context,
) (bound context.Context, settled func(), err error) {
	if err := e.admit(); err != nil {
		return nil, nil, err
	}
	bound, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(e.ctx, cancel)
	return bound, func() {
		stop()
		cancel()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.attempts--
		e.changed.Broadcast()
	}, nil
}

// forget gives back what a connection has that did not come about.
func (c *Conn) forget() {
	e := c.endpoint
	e.mu.Lock()
	if c.qp != nil {
		delete(e.conns, c.qp.QPN())
	}
	e.mu.Unlock()
	if c.qp != nil {
		c.qp.Close() // the manager would, after the time-wait
	}
	if c.control != nil {
		_ = c.control.Deregister()
	}
	c.closePD()
	e.leave()
}
