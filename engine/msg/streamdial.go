package msg

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"xroce/roce/msg"
)

// network is the name of the network of streams.
const network = "roce"

// An Addr is an address and port of the connection manager: a net.Addr.
type Addr netip.AddrPort

// Network returns "roce".
func (Addr) Network() string { return network }

// String returns the address and the port.
func (a Addr) String() string { return netip.AddrPort(a).String() }

// DialStream connects to an endpoint that listens for streams, by one rail or several, as Dial
// does. The error is a *net.OpError with the address, which wraps that of cm.Manager.Dial.
func (e *Endpoint) DialStream(
	ctx context.Context, to netip.AddrPort, further ...netip.AddrPort,
) (*Stream, error) {
	all := append([]netip.AddrPort{to}, further...)
	c, err := e.dialRails(ctx, msg.ServiceStream, all)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Addr: Addr(to), Err: err}
	}
	return c.stream, nil
}

// DialContext is DialStream for those who know names only, such as net/http: it looks up what
// net.Dialer would for "tcp", "tcp4" and "tcp6", and tries the addresses in turn.
func (e *Endpoint) DialContext(ctx context.Context, family, address string) (net.Conn, error) {
	list, err := lookUp(ctx, family, address)
	if err != nil {
		return nil, &net.OpError{Op: "dial", Net: network, Err: err}
	}
	for _, to := range list {
		var s *Stream
		if s, err = e.DialStream(ctx, to); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// lookUp returns the addresses of a name and a service, at least one.
func lookUp(ctx context.Context, family, address string) ([]netip.AddrPort, error) {
	ip, ok := map[string]string{"tcp": "ip", "tcp4": "ip4", "tcp6": "ip6"}[family]
	if !ok {
		return nil, net.UnknownNetworkError(family)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := net.DefaultResolver.LookupPort(ctx, family, service)
	if err != nil {
		return nil, err
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, ip, host)
	if err != nil {
		return nil, err
	}
	var list []netip.AddrPort
	for _, a := range addrs {
		list = append(list, netip.AddrPortFrom(a.Unmap(), uint16(port)))
	}
	return list, nil
}

// A StreamListener takes connections that carry bytes: a net.Listener. Its methods are safe for
// concurrent use. It connects with peers as a Listener does.
type StreamListener struct {
	lobby   *lobby
	closing sync.Once
}

var _ net.Listener = (*StreamListener)(nil)

// ListenStream takes connections at an address and port of the first rail, or of several: see
// Listen. The error is a *net.OpError with the address.
func (e *Endpoint) ListenStream(
	at netip.AddrPort, further ...netip.AddrPort,
) (*StreamListener, error) {
	l, err := e.receive(append([]netip.AddrPort{at}, further...), msg.ServiceStream)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: Addr(at), Err: err}
	}
	return &StreamListener{lobby: l}, nil
}

// Accept waits for a peer and returns the connection with it, a *Stream. The error wraps
// net.ErrClosed.
func (l *StreamListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.lobby.accepted:
		return c.stream, nil
	case <-l.lobby.ctx.Done():
		return nil, l.opError("accept")
	}
}

// Close ends it. Connections that were not accepted are closed, the others stay. The error of a
// second call wraps net.ErrClosed.
func (l *StreamListener) Close() error {
	err := l.opError("close")
	l.closing.Do(func() {
		l.lobby.close()
		err = nil
	})
	return err
}

func (l *StreamListener) opError(op string) error {
	return &net.OpError{Op: op, Net: network, Addr: l.Addr(), Err: net.ErrClosed}
}

// Addr returns the address that it listens at.
func (l *StreamListener) Addr() net.Addr { return Addr(l.lobby.cores[0].Addr()) }
