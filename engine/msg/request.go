package msg

import (
	"context"
	"net/netip"

	"xroce/engine/cm"
	"xroce/roce/msg"
)

// A RequestListener takes peers that want to be connected, in two steps: for a server that decides
// whom to connect with, and how many at a time. A Listener does both. Its methods are safe for
// concurrent use.
type RequestListener struct {
	endpoint *Endpoint
	core     *cm.Listener
}

// ListenRequests takes requests at an address and port of the first rail: see cm.Manager.Listen.
// Further rails are refused.
func (e *Endpoint) ListenRequests(at netip.AddrPort) (*RequestListener, error) {
	core, err := e.manager.Listen(at)
	if err != nil {
		return nil, err
	}
	return &RequestListener{endpoint: e, core: core}, nil
}

// Next waits for a peer that wants to be connected. It must be answered, by Request.Accept or
// Request.Reject. Who does not speak messages is refused before. The error is that of the context,
// or says that the listener was closed.
func (l *RequestListener) Next(ctx context.Context) (*Request, error) {
	for {
		r, err := l.core.Accept(ctx)
		if err != nil {
			return nil, err
		}
		e := l.endpoint
		theirs, ok := e.judge(e.nic, r, msg.ServiceEndpoint)
		switch {
		case !ok:
		case theirs.Session != (msg.Token{}):
			e.refuse(e.nic, r, msg.ServiceEndpoint, msg.ErrSession)
		default:
			return &Request{endpoint: e, core: r, theirs: theirs}, nil
		}
	}
}

// Addr returns the address that it listens at.
func (l *RequestListener) Addr() netip.AddrPort { return l.core.Addr() }

// Close ends it. It is idempotent, and the error is always nil.
func (l *RequestListener) Close() error { return l.core.Close() }

// A Request is a peer that wants to be connected. Its methods are safe for concurrent use.
type Request struct {
	endpoint *Endpoint
	core     *cm.Request
	theirs   msg.Hello
}

// RemoteAddr returns the address and port of the peer, which is not known to be there yet.
func (r *Request) RemoteAddr() netip.AddrPort { return r.core.RemoteAddr() }

// Accept connects, and waits until the peer is ready, too, or the context ends.
func (r *Request) Accept(ctx context.Context) (*Conn, error) {
	return r.endpoint.accept(ctx, r.endpoint.nic, r.core, &r.theirs, msg.ServiceEndpoint)
}

// Reject refuses the peer.
func (r *Request) Reject() error { return r.core.Reject(nil) }
