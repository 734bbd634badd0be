package cm

import (
	"context"
	"errors"
	"net/netip"

	"xroce/engine"
	"xroce/engine/crowd"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// A Request is a connection that a peer wants, or inside of this package a lookup. Its methods are
// safe for concurrent use.
type Request struct {
	manager  *Manager
	listener *Listener
	event    cm.Event
	// Of what is shown to the application, which does not change any more:
	way  wire.Path // of the connection
	rank cm.Rank   // of its host

	// Under the manager's lock:
	search *search // for the way
	taken  bool    // by the application
	err    error   // why it cannot be accepted any more
}

// takeRequest takes a request that came, for a listener. The application sees it, and a lookup is
// answered, when the way back to the host is known from which it claims to come: one that is
// there. Addresses of hosts that are not are cheap, so all but what is known already has to wait
// for its turn. The caller holds mu.
func (m *Manager) takeRequest(l *Listener, e cm.Event) {
	r := &Request{manager: m, listener: l, event: e}
	m.requests[e.ID] = r
	path := r.path()
	hop, ok := m.routes.get(destinationOf(&path), m.clock.Now())
	switch {
	case ok && hop.mac == path.Via.MAC:
		way, err := m.pathVia(&path, hop.mac)
		m.show(r, way, err)
	case !ok && !hop.none && m.dev.HasNeighbour(path.Remote, path.Via.VLAN):
		m.look(&search{path: path, requests: []*Request{r}})
	default:
		if e.Type == cm.EventConnectRequest && m.routes.hops.lead(path.Via.MAC) {
			// It came by a router of hosts that are known, and is not to give way to all who
			// come by stations of which nothing is known, before anybody had the time to look.
			_ = m.machine.Vouch(e.ID, cm.RankKnown, path.Via.MAC) // it is there
		}
		// Also when it came from another station than the one that is remembered: that may be
		// somebody else, or the host or its router has another MAC address now.
		m.showWhenFound(r)
	}
}

// path is that of the connection, or of the answer to a lookup, and the station that asked.
func (r *Request) path() cm.Path {
	if r.event.Type == cm.EventSIDRRequest {
		return r.event.Path
	}
	path := r.event.Params.Path
	path.Via = r.event.Path.Via
	return path
}

// show shows a request to the application, and answers a lookup, unless there is no way back to
// its host. The caller holds mu.
func (m *Manager) show(r *Request, way wire.Path, err error) {
	if r.event.Type == cm.EventSIDRRequest {
		delete(m.requests, r.event.ID)
		r.listener.datagrams.response(m, r.event, way.DstMAC, err)
		return
	}
	if err != nil {
		r.fail(err)
		delete(m.requests, r.event.ID)
		local := r.event.Path.Local
		// It is there, so this cannot be refused.
		_ = m.machine.Reject(m.clock.Now(), r.event.ID, cm.ReasonInvalidGID, local[:], nil)
		return
	}
	r.way = way
	r.rank = cm.RankKnown
	// A MAC address that is part of the address is known without anybody being there.
	_, told := r.event.Path.Remote.MAC()
	if !told && r.way.DstMAC == r.event.Path.Via.MAC {
		r.rank = cm.RankNeighbour
	}
	_ = m.machine.Vouch(r.event.ID, r.rank, r.way.DstMAC) // as above
	r.listener.queue = append(r.listener.queue, r)
	r.listener.wake()
}

// LocalAddr returns the address and port that the request is for, port 0 of a service ID that
// is none of rdma_cm.
func (r *Request) LocalAddr() netip.AddrPort {
	return netip.AddrPortFrom(r.event.Path.Local.Addr(), portOf(r.event.Service))
}

// RemoteAddr returns the peer's address and port, the latter as above.
func (r *Request) RemoteAddr() netip.AddrPort {
	return netip.AddrPortFrom(r.event.Path.Remote.Addr(), r.event.IP.Src.Port())
}

// Via returns the station on the link that the request came from: the peer, or a router. Who sent
// the frame wrote it there.
func (r *Request) Via() cm.Via { return r.event.Path.Via }

// Source returns where the request came from, as it counts where places are few.
func (r *Request) Source() crowd.Source {
	return crowd.Source{
		Host: crowd.Host(r.RemoteAddr().Addr()), Station: r.Via().MAC,
		Proven: r.rank == cm.RankNeighbour,
	}
}

// Service returns the service ID that the request is for.
func (r *Request) Service() cm.ServiceID { return r.event.Service }

// Private returns the peer's private data, padded with zeros: 56 bytes, 92 of a service ID that
// is none of rdma_cm.
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
// bounds all that. When it fails the request is refused, and a queue pair of the caller's is
// in ERR, if the attempt got that far.
func (r *Request) Accept(ctx context.Context, s Setup) (*Conn, error) {
	s.setDefaults()
	c, err := r.accept(ctx, &s)
	if err != nil {
		reason := cm.ReasonNoResources
		if errors.Is(err, ErrExtensions) {
			reason = cm.ReasonVendorOption
		}
		// A peer that refused it already, or gave up, need not be told.
		_ = r.RejectFor(reason, nil, nil)
		return nil, err
	}
	if err := c.ready(ctx); err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// drop ends a connection that nobody has. A queue pair of the caller's stays, in ERR, and when he
// closes it, it is gone, however long the peer takes to confirm.
func (c *Conn) drop() {
	if c.made {
		c.Destroy()
		return
	}
	c.Close()
	c.manager.mu.Lock()
	defer c.manager.mu.Unlock()
	c.rest()
}

// ready waits until the peer is ready. One that was, and has hung up since, was: what it
// sent meanwhile is there.
func (c *Conn) ready(ctx context.Context) error {
	select {
	case <-c.up:
		return nil
	case <-c.done:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-c.up:
		return nil
	default:
		return c.Err()
	}
}

// accept brings a queue pair to RTS and sends the REP.
func (r *Request) accept(ctx context.Context, s *Setup) (*Conn, error) {
	if err := r.over(); err != nil {
		return nil, err
	}
	m := r.manager
	p := r.event.Params
	if err := s.agrees(p.Extensions); err != nil {
		return nil, err
	}
	p.RQPSN, p.MinRNRTimer = m.dev.RandomPSN(), s.MinRNRTimer
	p.MaxRdAtomic = min(p.MaxRdAtomic, s.InitiatorDepth)
	p.MaxDestRdAtomic = min(p.MaxDestRdAtomic, s.ResponderRes)
	want := roce.TypeRC
	switch p.Transport {
	case cm.TransportUC:
		want = roce.TypeUC
	case cm.TransportXRC:
		want = roce.TypeXRCRecv
	}
	qp, err := s.ready(ctx, m, want)
	if err != nil {
		return nil, err
	}
	p.Extensions &= qp.Extensions()
	c, err := r.reply(qp, &p, s, s.connect(qp, &p, r.way, r.Private()))
	switch {
	case err == nil:
	case s.QP == nil:
		s.discard(qp)
	default:
		// From any state to ERR: only a queue pair that is closed refuses it.
		_ = qp.Modify(&roce.Attr{State: roce.StateErr}, roce.AttrState)
	}
	return c, err
}

// over says why the request cannot be accepted any more, nil if it can: nothing is made for
// one that had to make room.
func (r *Request) over() error {
	r.manager.mu.Lock()
	defer r.manager.mu.Unlock()
	return r.err
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
		InitiatorDepth: p.MaxRdAtomic, RNRRetryCount: s.RNRRetry, FlowControl: counts(qp),
		SRQ: qp.HasSRQ(), Extensions: p.Extensions, Private: s.Private,
	})
	if err != nil {
		return nil, err
	}
	r.fail(ErrClosed)
	delete(m.requests, r.event.ID)
	c := m.newConn(r.event.ID, qp, s)
	c.local, c.remote, c.private = r.LocalAddr(), r.RemoteAddr(), r.Private()
	c.service = r.Service()
	c.listen()
	m.dispatch()
	m.wake()
	return c, nil
}
