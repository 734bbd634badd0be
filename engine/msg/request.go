package msg

import (
	"context"
	"net/netip"

	"xroce/engine/cm"
	"xroce/roce/msg"
)

// A Request is a peer that wants to be connected: what Listener.Accept does in two steps, for a
// server that decides whom to connect with, and how many at a time. Its methods are safe for
// concurrent use.
type Request struct {
	endpoint *Endpoint
	core     *cm.Request
}

// Next waits for a peer that wants to be connected. It must be answered, by Request.Accept or
// Request.Reject. The error is that of the context, or says that the listener was closed.
func (l *Listener) Next(ctx context.Context) (*Request, error) {
	r, err := l.core.Accept(ctx)
	if err != nil {
		return nil, err
	}
	return &Request{endpoint: l.endpoint, core: r}, nil
}

// RemoteAddr returns the address and port of the peer, which is not known to be there yet.
func (r *Request) RemoteAddr() netip.AddrPort { return r.core.RemoteAddr() }

// Accept connects, and waits until the peer is ready, too, or the context ends. Who does not
// speak messages is refused.
func (r *Request) Accept(ctx context.Context) (*Conn, error) {
	return r.endpoint.accept(ctx, r.core, msg.ServiceEndpoint)
}

// Reject refuses the peer.
func (r *Request) Reject() error { return r.core.Reject(nil) }
