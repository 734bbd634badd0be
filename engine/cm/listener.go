package cm

import (
	"context"
	"net/netip"
	"slices"

	"xroce/engine"
	"xroce/roce/cm"
)

// A Listener takes requests to a port. Its methods are safe for concurrent use.
type Listener struct {
	manager *Manager
	id      cm.ListenerID
	addr    netip.AddrPort
	service *Datagrams // answers lookups, nil for connections
	some    chan struct{}
	done    chan struct{}

	queue []*Request // under the manager's lock, bounded by the machine's backlog
}

// Listen takes requests to a port of rdma_cm's TCP space: to an address of the
// device, to 0.0.0.0 for any IPv4 address or to :: for any IPv6 address. Those
// that are not accepted yet wait, 128 of them; then the oldest are dropped, first those of
// the host that has the most. The error is
// cm.ErrInUse of roce/cm when the port has a listener already.
func (m *Manager) Listen(at netip.AddrPort) (*Listener, error) {
	return m.listen(at, cm.PortSpaceTCP, nil)
}

func (m *Manager) listen(at netip.AddrPort, ps cm.PortSpace, s *Datagrams) (*Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	id, err := m.machine.Listen(cm.Listen{
		Service: cm.ServiceIDOf(ps, at.Port()), Addr: at.Addr(), Datagram: s != nil,
	})
	if err != nil {
		return nil, err
	}
	l := &Listener{
		manager: m, id: id, addr: at, service: s, some: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	m.listeners[id] = l
	return l, nil
}

// Addr returns the address that it listens at.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Close ends it. Requests that were not taken by Accept are refused. It is idempotent.
func (l *Listener) Close() {
	m := l.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners[l.id] != l {
		return
	}
	delete(m.listeners, l.id)
	close(l.done)
	// It is there, so this cannot be refused.
	_ = m.machine.Unlisten(l.id)
	for _, r := range l.queue {
		r.fail(ErrClosed)
		m.refuse(r.event)
	}
	l.queue = nil
	m.dispatch()
	m.wake()
}

// take queues a request. The caller holds the manager's lock.
func (l *Listener) take(e cm.Event) {
	if e.Type == cm.EventSIDRRequest {
		l.service.response(l.manager, e)
		return
	}
	r := &Request{manager: l.manager, listener: l, event: e}
	l.manager.requests[e.ID] = r
	l.queue = append(l.queue, r)
	l.wake()
}

// drop takes out a request whose peer has given up, or that had to make room. The
// caller holds the manager's lock.
func (l *Listener) drop(r *Request) {
	l.queue = slices.DeleteFunc(l.queue, func(x *Request) bool { return x == r })
}

func (l *Listener) wake() {
	select {
	case l.some <- struct{}{}:
	default:
	}
}

// Accept waits for a request. It must be answered, by Request.Accept or
// Request.Reject.
func (l *Listener) Accept(ctx context.Context) (*Request, error) {
	for {
		if r := l.next(); r != nil {
			return r, nil
		}
		select {
		case <-l.some:
		case <-l.done:
			return nil, ErrClosed
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// next takes the oldest request, nil when there is none.
func (l *Listener) next() *Request {
	l.manager.mu.Lock()
	defer l.manager.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	r := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if len(l.queue) > 0 {
		l.wake() // for another call of Accept
	}
	return r
}

// Waiting returns how many requests were not taken by Accept yet.
func (l *Listener) Waiting() int {
	l.manager.mu.Lock()
	defer l.manager.mu.Unlock()
	return len(l.queue)
}

// A Request is a connection that a peer wants. Its methods are safe for concurrent
// use.
type Request struct {
	manager  *Manager
	listener *Listener
	event    cm.Event

	err error // why it cannot be accepted any more, under the manager's lock
}

// LocalAddr returns the address and port that the request is for.
func (r *Request) LocalAddr() netip.AddrPort {
	return netip.AddrPortFrom(r.event.IP.Dst, r.event.Service.Port())
}

// RemoteAddr returns the peer's address and port.
func (r *Request) RemoteAddr() netip.AddrPort { return r.event.IP.Src }

// Private returns the peer's private data: 56 bytes, padded with zeros.
func (r *Request) Private() []byte { return r.event.Private }

// Params returns the attributes that the peer proposes; RQPSN is missing.
func (r *Request) Params() cm.QPParams { return r.event.Params }

// fail ends a request that was not accepted yet. The caller holds the manager's lock.
func (r *Request) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// Reject refuses the request, with private data of at most 148 bytes.
func (r *Request) Reject(private []byte) error {
	return r.RejectFor(cm.ReasonConsumer, nil, private)
}

// RejectFor refuses the request for another reason than that of the application,
// with what information that calls for.
func (r *Request) RejectFor(reason cm.Reason, info, private []byte) error {
	m := r.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	err := m.machine.Reject(m.clock.Now(), r.event.ID, reason, info, private)
	if err == nil {
		r.fail(ErrClosed)
		m.dispatch()
		m.wake()
	}
	return err
}

// Accept makes the connection and waits until the peer is ready, too. What the
// peer wants to have outstanding is lowered to what the setup allows. The context
// bounds all that. When it fails the request is refused.
func (r *Request) Accept(ctx context.Context, s Setup) (*Conn, error) {
	s.setDefaults()
	c, err := r.accept(ctx, &s)
	if err != nil {
		// A peer that refused it already, or gave up, need not be told.
		_ = r.RejectFor(cm.ReasonNoResources, nil, nil)
		return nil, err
	}
	select {
	case <-c.up:
		return c, nil
	case <-c.done:
		err = c.Err()
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.Close()
	return nil, err
}

// accept brings a queue pair to RTS and sends the REP.
func (r *Request) accept(ctx context.Context, s *Setup) (*Conn, error) {
	m := r.manager
	p := r.event.Params
	p.RQPSN, p.MinRNRTimer = m.dev.RandomPSN(), s.MinRNRTimer
	p.MaxRdAtomic = min(p.MaxRdAtomic, s.InitiatorDepth)
	p.MaxDestRdAtomic = min(p.MaxDestRdAtomic, s.ResponderRes)
	av, err := m.vector(p.Path)
	if err != nil {
		return nil, err
	}
	way, err := m.dev.ResolvePath(ctx, av)
	if err != nil {
		return nil, err
	}
	qp, err := s.ready(ctx, m.dev)
	if err != nil {
		return nil, err
	}
	c, err := r.reply(qp, &p, s, connect(qp, &p, way))
	if err != nil && s.QP == nil {
		qp.Close()
	}
	return c, err
}

// reply sends the REP for a queue pair that is in RTS, unless it could not go there.
func (r *Request) reply(
	qp *engine.QP, p *cm.QPParams, s *Setup, failed error,
) (*Conn, error) {
	if failed != nil {
		return nil, failed
	}
	m := r.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	if r.err != nil {
		return nil, r.err
	}
	err := m.machine.Accept(m.clock.Now(), r.event.ID, cm.Accept{
		QPN: qp.QPN(), PSN: p.RQPSN, ResponderRes: p.MaxDestRdAtomic,
		InitiatorDepth: p.MaxRdAtomic, RNRRetryCount: s.RNRRetry, SRQ: s.Init.SRQ != nil,
		Private: s.Private,
	})
	if err != nil {
		return nil, err
	}
	r.fail(ErrClosed)
	delete(m.requests, r.event.ID)
	c := m.newConn(r.event.ID, qp, s.QP == nil)
	c.local, c.remote, c.private = r.LocalAddr(), r.RemoteAddr(), r.Private()
	m.dispatch()
	m.wake()
	return c, nil
}
