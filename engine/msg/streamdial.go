package msg

import (
	"context"
	"net"
	"net/netip"
	"sync"

	"xroce/engine/cm"
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

// DialStream connects to an endpoint that listens for streams. The error is a *net.OpError with
// the address, which wraps that of cm.Manager.Dial.
func (e *Endpoint) DialStream(ctx context.Context, to netip.AddrPort) (*Stream, error) {
	c, err := e.dial(ctx, to, msg.ServiceStream)
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

// handshakes is how many peers of a listener may be connecting, or be connected and not be
// accepted, beside those that wait for that: so one that is slow holds up no others.
const handshakes = 16

// A StreamListener takes connections that carry bytes: a net.Listener. Its methods are safe for
// concurrent use.
type StreamListener struct {
	endpoint *Endpoint
	core     *cm.Listener
	accepted chan *Stream
	ctx      context.Context // ends with Close
	cancel   context.CancelFunc
	under    sync.WaitGroup
	closing  sync.Once
}

var _ net.Listener = (*StreamListener)(nil)

// ListenStream takes connections at an address and port of the device: see cm.Manager.Listen.
// The error is a *net.OpError with the address.
func (e *Endpoint) ListenStream(at netip.AddrPort) (*StreamListener, error) {
	core, err := e.manager.Listen(at)
	if err != nil {
		return nil, &net.OpError{Op: "listen", Net: network, Addr: Addr(at), Err: err}
	}
	l := &StreamListener{endpoint: e, core: core, accepted: make(chan *Stream)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	l.under.Go(l.run)
	return l, nil
}

// run connects with who asks.
func (l *StreamListener) run() {
	places := make(chan struct{}, handshakes)
	for {
		select {
		case places <- struct{}{}:
		case <-l.ctx.Done():
			return
		}
		r, err := l.core.Accept(l.ctx)
		if err != nil {
			l.cancel() // the manager has ended, if not we
			return
		}
		l.under.Go(func() {
			l.connect(r)
			<-places
		})
	}
}

// connect connects with a peer, and waits until somebody takes the stream. Who speaks no
// streams is refused.
func (l *StreamListener) connect(r *cm.Request) {
	c, err := l.endpoint.accept(l.ctx, r, msg.ServiceStream)
	if err != nil {
		return // which the peer was told
	}
	select {
	case l.accepted <- c.stream:
	case <-l.ctx.Done():
		_ = c.stream.Close() // it was not closed before
	}
}

// Accept waits for a peer and returns the connection with it, a *Stream. The error wraps
// net.ErrClosed.
func (l *StreamListener) Accept() (net.Conn, error) {
	select {
	case s := <-l.accepted:
		return s, nil
	case <-l.ctx.Done():
		return nil, l.opError("accept")
	}
}

// Close ends it. Connections that were not accepted are closed, the others stay. The error of a
// second call wraps net.ErrClosed.
func (l *StreamListener) Close() error {
	err := l.opError("close")
	l.closing.Do(func() {
		l.cancel()
		l.core.Close()
		l.under.Wait()
		err = nil
	})
	return err
}

func (l *StreamListener) opError(op string) error {
	return &net.OpError{Op: op, Net: network, Addr: l.Addr(), Err: net.ErrClosed}
}

// Addr returns the address that it listens at.
func (l *StreamListener) Addr() net.Addr { return Addr(l.core.Addr()) }
