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

// Listen takes connections at an address and port of the first rail: see cm.Manager.Listen. With
// more addresses it is at the second of the second rail, and so on. Until Close further rails join
// their connections, which are none that Accept returns.
func (e *Endpoint) Listen(at netip.AddrPort, further ...netip.AddrPort) (*Listener, error) {
	l, err := e.receive(append([]netip.AddrPort{at}, further...), msg.ServiceEndpoint)
	if err != nil {
		return nil, err
	}
	return &Listener{l}, nil
}

// Accept waits for a peer that is connected, or was: what it had sent before it hung up can be
// received. Who has hung up for more than a second is dropped when others wait to be connected.
// The error is ErrClosed when the listener is closed, or its endpoint or manager.
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
func (l *Listener) Addr() netip.AddrPort { return l.lobby.cores[0].Addr() }

// accept connects with a peer whose hello is theirs.
func (e *Endpoint) accept(
	ctx context.Context, n *nic, r *cm.Request, theirs *msg.Hello, service msg.Service,
) (*Conn, error) {
	ctx, settled, err := e.attempt(ctx, n)
	if err != nil {
		e.refuse(n, r, service, err)
		return nil, err
	}
	defer settled()
	c := e.newConn(service)
	c.rail = c.newRail(n)
	ours := e.hello(n, service)
	if ours.Capabilities&theirs.Capabilities&msg.CapabilityRails != 0 {
		e.mu.Lock()
		ours.Session = e.machine.NewSession()
		e.mu.Unlock()
	}
	if c.cm, err = r.Accept(ctx, e.setup(c.rail, ours)); err != nil {
		c.forget()
		return nil, err
	}
	if err := c.open(ours, theirs); err != nil {
		c.cm.Destroy()
		c.forget()
		return nil, err
	}
	c.start()
	e.watch(c.rail)
	return c, nil
}

// judge reads what a peer says of itself, and refuses it if that does not suit.
func (e *Endpoint) judge(n *nic, r *cm.Request, service msg.Service) (msg.Hello, bool) {
	theirs, err := e.hear(e.hello(n, service), r.Private())
	if err != nil {
		e.refuse(n, r, service, err)
	}
	return theirs, err == nil
}

// refuse tells a peer why it is not connected.
func (e *Endpoint) refuse(n *nic, r *cm.Request, service msg.Service, why error) {
	ours := e.hello(n, service)
	ours.Status = msg.Refusal(why)
	private := make([]byte, msg.HelloLen)
	ours.Put(private)
	_ = r.Reject(private) // only one that has given up need not be told
}
