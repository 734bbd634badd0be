package cm

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
	"xroce/roce/wire"
)

// Dial connects to a port of rdma_cm's TCP space, or, with a queue pair of type XRC_SEND, to
// one of its IB space, as the examples of librdmacm do. The context bounds the attempt.
// The error is a *RejectedError when the peer refuses, ErrTimeout when it does not
// answer, engine.ErrNoNeighbour when nobody has its address. A queue pair of the
// caller's is then in ERR, if the attempt got that far.
func (m *Manager) Dial(ctx context.Context, to netip.AddrPort, s Setup) (*Conn, error) {
	s.setDefaults()
	if s.PathMTU == 0 {
		s.PathMTU = m.dev.ActiveMTU()
	}
	port := m.ephemeral()
	path, err := m.pathTo(ctx, to, s.LocalAddr, port, s.TClass)
	if err != nil {
		return nil, err
	}
	way, err := m.resolve(ctx, &path)
	if err != nil {
		return nil, err
	}
	qp, err := s.ready(ctx, m.dev, roce.TypeRC, roce.TypeXRCSend)
	if err != nil {
		return nil, err
	}
	c, err := m.request(path, to, port, &s, qp)
	if err != nil {
		if s.QP == nil {
			qp.Close()
		}
		return nil, err
	}
	select {
	case e := <-c.response:
		err = c.establish(&e, way, &s)
	case <-c.done:
		err = c.Err()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}

// request sends the REQ.
func (m *Manager) request(
	path cm.Path, to netip.AddrPort, port uint16, s *Setup, qp *engine.QP,
) (*Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	transport, space := cm.TransportRC, cm.PortSpace(cm.PortSpaceTCP)
	if qp.Type() == roce.TypeXRCSend {
		transport, space = cm.TransportXRC, cm.PortSpaceIB
	}
	id, err := m.machine.Connect(m.clock.Now(), cm.Connect{
		Path: path, Service: cm.ServiceIDOf(space, to.Port()), SrcPort: port,
		Transport: transport, QPN: qp.QPN(), PSN: m.dev.RandomPSN(), PathMTU: s.PathMTU,
		ResponderRes: s.ResponderRes, InitiatorDepth: s.InitiatorDepth,
		RetryCount: s.RetryCount, RNRRetryCount: s.RNRRetry, AckTimeout: s.AckTimeout,
		FlowControl: counts(qp), SRQ: qp.HasSRQ(), Extensions: qp.Extensions(),
		Private: s.Private,
	})
	if err != nil {
		return nil, err
	}
	c := m.newConn(id, qp, s.QP == nil)
	c.local = netip.AddrPortFrom(path.Local.Addr(), port)
	c.remote = netip.AddrPortFrom(path.Remote.Addr(), to.Port())
	m.dispatch()
	m.wake()
	return c, nil
}

// counts reports whether the acknowledges of a queue pair tell how many receives it has.
func counts(qp *engine.QP) bool { return qp.Type() == roce.TypeRC && !qp.HasSRQ() }

// establish brings the queue pair to RTS with the peer's attributes, and sends the RTU.
func (c *Conn) establish(e *cm.Event, way wire.Path, s *Setup) error {
	p := e.Params
	if err := s.agrees(p.Extensions); err != nil {
		c.refuse(cm.ReasonVendorOption)
		return err
	}
	p.MinRNRTimer = s.MinRNRTimer
	p.MaxRdAtomic = min(p.MaxRdAtomic, s.InitiatorDepth)
	p.MaxDestRdAtomic = min(p.MaxDestRdAtomic, s.ResponderRes)
	if err := connect(c.qp, &p, way); err != nil {
		if over := c.Err(); over != nil {
			return over // the queue pair is in ERR because the connection has ended
		}
		return err
	}
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if c.err != nil {
		return c.err
	}
	if err := m.machine.Establish(c.id, nil); err != nil {
		return err
	}
	m.dispatch()
	m.wake()
	return nil
}

// refuse tells the peer why its answer is not taken. Close, which follows, only ends our side.
func (c *Conn) refuse(reason cm.Reason) {
	m := c.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	// Only a connection that has ended meanwhile refuses it.
	_ = m.machine.Reject(m.clock.Now(), c.id, reason, nil, nil)
	m.dispatch()
	m.wake()
}

// pathTo is the way to a peer, whose neighbour it resolves.
func (m *Manager) pathTo(
	ctx context.Context, to netip.AddrPort, local netip.Addr, port uint16, tclass uint8,
) (cm.Path, error) {
	remote := wire.GIDFromAddr(to.Addr())
	if remote.IsZero() || remote.IsMulticast() || to.Addr().IsUnspecified() {
		return cm.Path{}, fmt.Errorf("%w: nobody can be at %s", roce.ErrInvalid, to)
	}
	source, err := m.source(to.Addr(), local)
	if err != nil {
		return cm.Path{}, err
	}
	path := cm.Path{
		Local: source, Remote: remote, TClass: tclass, HopLimit: hopLimit,
		FlowLabel: cm.FlowLabelOf(port, to.Port()),
	}
	return path, m.learn(ctx, path)
}

// source is the GID from which to reach a peer: that of an address, or the one that
// the routes say.
func (m *Manager) source(to, local netip.Addr) (gid wire.GID, err error) {
	gids := m.dev.GIDs()
	if local.IsValid() {
		gid = wire.GIDFromAddr(local)
		if !slices.Contains(gids, gid) || gid.IsIPv4() != wire.GIDFromAddr(to).IsIPv4() {
			return gid, fmt.Errorf("%w: %s from %s", ErrNoAddress, to, local)
		}
		return gid, nil
	}
	index, err := m.dev.SourceGID(to)
	if err != nil {
		return gid, fmt.Errorf("%w: %w", ErrNoAddress, err)
	}
	entry, err := m.dev.QueryGID(index)
	if err != nil {
		return gid, fmt.Errorf("%w: %w", ErrNoAddress, err)
	}
	if slices.Index(gids, entry.GID) != index {
		// A path names a GID and no network, so the first network with that GID would be
		// used.
		return gid, fmt.Errorf("%w: %s on %s is not the only network with %s", ErrNoAddress, to,
			entry.Netdev, entry.GID.Addr())
	}
	return entry.GID, nil
}

// hopLimit is that of all MADs and connections.
const hopLimit = 64

// ephemeral draws a source port (RFC 6335, the dynamic ports).
func (m *Manager) ephemeral() uint16 { return 0xc000 | uint16(m.rand.Uint64()&0x3fff) }
