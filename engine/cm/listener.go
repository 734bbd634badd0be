package cm

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"slices"

	"xroce/roce/cm"
)

// A Listener takes requests to a port. Its methods are safe for concurrent use.
type Listener struct {
	manager   *Manager
	id        cm.ListenerID
	addr      netip.AddrPort
	service   cm.ServiceID
	datagrams *Datagrams // answers lookups, nil for connections
	some      chan struct{}
	done      chan struct{}

	// Under the manager's lock:
	queue []*Request // bounded by the machine's backlog
	crowd bool       // it is the turn of a station that has more than half of them
}

// Listen takes requests to a port of rdma_cm's TCP space: to an address of the
// device, to 0.0.0.0 for any IPv4 address or to :: for any IPv6 address. Those
// that are not accepted yet wait, 128 of them; then some are dropped, first those of a station that
// has more than half of them, then those of hosts of which the least is known, of these those of
// the station and of the host that has the most, and the oldest. The error is
// cm.ErrInUse of roce/cm, and syscall.EADDRINUSE, when the port has a listener already.
func (m *Manager) Listen(at netip.AddrPort) (*Listener, error) {
	return m.listen(at.Addr(), cm.Listen{Service: cm.ServiceIDOf(cm.PortSpaceTCP, at.Port())}, nil)
}

// ListenXRC is Listen for connections of XRC to a port of rdma_cm's IB space. Queue pairs of
// type XRC_RECV take them, which only receive.
func (m *Manager) ListenXRC(at netip.AddrPort) (*Listener, error) {
	return m.listen(at.Addr(), cm.Listen{
		Service: cm.ServiceIDOf(cm.PortSpaceIB, at.Port()), Transport: cm.TransportXRC,
	}, nil)
}

// ListenService is Listen for a service ID: one of a port space of rdma_cm, as RDMA_PS_IB, or
// any other of 64 bits, as kernel users of ib_cm have. mask says which of its bits count, 0 for
// all: a listener for a range learns from Request.Service which one a peer asks for.
func (m *Manager) ListenService(
	at netip.Addr, service, mask cm.ServiceID,
) (*Listener, error) {
	return m.listen(at, cm.Listen{Service: service, Mask: mask}, nil)
}

// ListenUC is ListenService for unreliable connections, which queue pairs of type UC take, to
// a service ID that is none of rdma_cm. A peer that dies is noticed by nobody but the
// application: nothing is acknowledged.
func (m *Manager) ListenUC(at netip.Addr, service, mask cm.ServiceID) (*Listener, error) {
	return m.listen(at, cm.Listen{
		Service: service, Mask: mask, Transport: cm.TransportUC,
	}, nil)
}

// listen adds a listener.
func (m *Manager) listen(at netip.Addr, what cm.Listen, s *Datagrams) (*Listener, error) {
	l, err := m.newListener(at, what, s)
	if errors.Is(err, cm.ErrInUse) {
		err = inUse{err}
	}
	return l, opError("listen", addressOf(at, what.Service), err)
}

// newListener is listen without the address in the error.
func (m *Manager) newListener(
	at netip.Addr, what cm.Listen, s *Datagrams,
) (*Listener, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	what.Addr, what.Datagram = at, s != nil
	id, err := m.machine.Listen(what)
	if err != nil {
		return nil, err
	}
	l := &Listener{
		manager: m, id: id, addr: netip.AddrPortFrom(at, portOf(what.Service)),
		service: what.Service, datagrams: s, some: make(chan struct{}, 1),
		done: make(chan struct{}),
	}
	m.listeners[id] = l
	return l, nil
}

// Addr returns the address that it listens at. The port of a service ID that is none of rdma_cm
// is 0.
func (l *Listener) Addr() netip.AddrPort { return l.addr }

// Service returns the service ID that it listens for.
func (l *Listener) Service() cm.ServiceID { return l.service }

// Close ends it. Requests that were not taken by Accept are refused. It is idempotent, and the
// error is always nil: a Listener is an io.Closer.
func (l *Listener) Close() error {
	m := l.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.listeners[l.id] != l {
		return nil
	}
	delete(m.listeners, l.id)
	close(l.done)
	// It is there, so this cannot be refused.
	_ = m.machine.Unlisten(l.id)
	for id, r := range m.requests {
		if r.listener == l && !r.taken {
			r.fail(ErrClosed)
			m.giveUp(r)
			delete(m.requests, id)
			m.refuse(r.event)
		}
	}
	l.queue = nil
	m.dispatch()
	m.wake()
	return nil
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

// Accept waits for a request, and returns the oldest one of the station on the link from which the
// fewest wait, by turns with one that has more than half of them; one that came by another way than
// the one that leads to its host waits for the others. It must be answered, by Request.Accept or
// Request.Reject.
//
// Who asks may not be there, or say nothing more, and Request.Accept waits for him. A loop that
// accepts one after the other waits with it; a Meeting does not.
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

// next takes a request, nil when there is none: of those of whose hosts most is known the oldest
// one of the station that has the fewest waiting. A station that has more than half of all, whoever
// it is, takes turns with the others: each has to wait for one of the other. Those that came by
// another way than the one to their host come last of them.
func (l *Listener) next() *Request {
	l.manager.mu.Lock()
	defer l.manager.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	waiting := map[cm.Via]int{}
	for _, r := range l.queue {
		waiting[r.Via()]++
	}
	crowds := func(r *Request) bool { return waiting[r.Via()] > len(l.queue)/2 }
	before := func(is func(*Request) bool, a, b *Request) int {
		switch ofA := is(a); {
		case ofA == is(b):
			return 0
		case ofA:
			return -1
		}
		return 1
	}
	turn := func(r *Request) bool { return crowds(r) == l.crowd }
	direct := func(r *Request) bool { return r.way.DstMAC == r.Via().MAC }
	r := slices.MinFunc(l.queue, func(a, b *Request) int {
		return cmp.Or(before(turn, a, b), before(direct, a, b), cmp.Compare(b.rank, a.rank),
			cmp.Compare(waiting[a.Via()], waiting[b.Via()]))
	})
	l.crowd = !crowds(r)
	r.taken = true
	l.drop(r)
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
