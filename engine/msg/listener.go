package msg

import (
	"context"
	"net/netip"

	"xroce/engine/cm"
	"xroce/roce/msg"
)

// A Listener takes connections of peers. Its methods are safe for concurrent use.
//
// Peers are connected in the background, a bounded number at a time, so that one that is slow, or
// never ready, holds up no others. Who does not speak messages, or not so that this end
// understands it, is refused before anything is made for it, and told why.
type Listener struct{ lobby *lobby }

// Listen takes connections at an address and port of the device: see cm.Manager.Listen.
func (e *Endpoint) Listen(at netip.AddrPort) (*Listener, error) {
	core, err := e.manager.Listen(at)
	if err != nil {
		return nil, err
	}
	l, err := e.receive(core, msg.ServiceEndpoint)
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// Accept waits for a peer that is connected. The error is ErrClosed when the listener is closed, or
// its endpoint or manager.
func (l *Listener) Accept(ctx context.Context) (*Conn, error) {
	select {
	case c := <-l.lobby.accepted:
		return c, nil
	case <-l.lobby.ctx.Done():
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Close ends it. Connections that were not accepted are aborted, the others stay. It is idempotent,
// and the error is always nil: a Listener is an io.Closer.
func (l *Listener) Close() error {
	l.lobby.close()
	return nil
}

// Addr returns the address that it listens at.
func (l *Listener) Addr() netip.AddrPort { return l.lobby.core.Addr() }

// accept connects with a peer whose hello is theirs.
func (e *Endpoint) accept(
	ctx context.Context, r *cm.Request, theirs *msg.Hello, service msg.Service,
) (*Conn, error) {
	ctx, settled, err := e.attempt(ctx)
	if err != nil {
		e.refuse(r, service, err)
		return nil, err
	}
	defer settled()
	c := e.newConn(service)
	ours := e.hello(service)
	if c.cm, err = r.Accept(ctx, e.setup(c, ours)); err != nil {
		c.forget()
		return nil, err
	}
	if err := c.open(ours, theirs); err != nil {
		c.cm.Close()
		c.forget()
		return nil, err
	}
	c.start()
	go c.watch()
	return c, nil
}

// judge reads what a peer says of itself, and refuses it if that does not suit.
func (e *Endpoint) judge(r *cm.Request, service msg.Service) (msg.Hello, bool) {
	theirs, err := e.hear(e.hello(service), r.Private())
	if err != nil {
		e.refuse(r, service, err)
	}
	return theirs, err == nil
}

// refuse tells a peer why it is not connected.
func (e *Endpoint) refuse(r *cm.Request, service msg.Service, why error) {
	ours := e.hello(service)
	ours.Status = msg.Refusal(why)
	private := make([]byte, msg.HelloLen)
	ours.Put(private)
	_ = r.Reject(private) // only one that has given up need not be told
}
