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
	space := cm.PortSpaceTCP
	if s.qpType() == roce.TypeXRCSend {
		space = cm.PortSpaceIB
	}
	return m.DialService(ctx, to.Addr(), cm.ServiceIDOf(space, to.Port()), s)
}

// DialService is Dial to a service ID: one of a port space of rdma_cm, as RDMA_PS_IB, or any
// other of 64 bits, as kernel users of ib_cm have. The latter have no ports, and 92 bytes of
// private data, and may have a queue pair of type UC, which the peer takes by ListenUC.
func (m *Manager) DialService(
	ctx context.Context, to netip.Addr, service cm.ServiceID, s Setup,
) (*Conn, error) {
	c, err := m.dial(ctx, to, service, &s)
	return c, opError("dial", addressOf(to, service), err)
}

// dial is DialService without the address in the error.
func (m *Manager) dial(
	ctx context.Context, to netip.Addr, service cm.ServiceID, s *Setup,
) (*Conn, error) {
	s.setDefaults()
	if s.PathMTU == 0 {
		s.PathMTU = m.dev.ActiveMTU()
	}
	var port uint16
	if service.IP() {
		port = m.ephemeral()
	}
	path, err := m.pathTo(ctx, to, s.LocalAddr, s.TClass, flowLabel(port, service))
	if err != nil {
		return nil, err
	}
	path.PKeyIndex, path.SL = s.PKeyIndex, s.SL
	way, err := m.resolve(ctx, &path)
	if err != nil {
		return nil, err
	}
	types := []roce.QPType{roce.TypeRC, roce.TypeXRCSend}
	if !service.IP() { // rdma_cm has no UC
		types = append(types, roce.TypeUC)
	}
	qp, err := s.ready(ctx, m, types...)
	if err != nil {
		return nil, err
	}
	c, err := m.request(path, service, port, s, qp)
	if err != nil {
		s.discard(qp)
		return nil, err
	}
	select {
	case e := <-c.response:
		err = c.establish(&e, way, s)
	case <-c.done:
		err = c.Err()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.drop()
		return nil, err
	}
	return c, nil
}

// request sends the REQ.
func (m *Manager) request(
	path cm.Path, service cm.ServiceID, port uint16, s *Setup, qp *engine.QP,
) (*Conn, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, ErrClosed
	}
	transport := cm.TransportRC
	switch qp.Type() {
	case roce.TypeUC:
		transport = cm.TransportUC
	case roce.TypeXRCSend:
		transport = cm.TransportXRC
	}
	id, err := m.machine.Connect(m.clock.Now(), cm.Connect{
		Path: path, Service: service, SrcPort: port,
		Transport: transport, QPN: qp.QPN(), PSN: m.dev.RandomPSN(), PathMTU: s.PathMTU,
		ResponderRes: s.ResponderRes, InitiatorDepth: s.InitiatorDepth,
		RetryCount: s.RetryCount, RNRRetryCount: s.RNRRetry, AckTimeout: s.AckTimeout,
		FlowControl: counts(qp), SRQ: qp.HasSRQ(), Extensions: qp.Extensions(),
		Private: s.Private,
	})
	if err != nil {
		return nil, err
	}
	c := m.newConn(id, qp, s)
	c.service = service
	c.local = netip.AddrPortFrom(path.Local.Addr(), port)
	c.remote = netip.AddrPortFrom(path.Remote.Addr(), portOf(service))
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
	if err := s.connect(c.qp, &p, way, e.Private); err != nil {
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
	c.watch()
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
	ctx context.Context, to, local netip.Addr, tclass uint8, label uint32,
) (cm.Path, error) {
	remote := wire.GIDFromAddr(to)
	if remote.IsZero() || remote.IsMulticast() || to.IsUnspecified() {
		return cm.Path{}, fmt.Errorf("%w: nobody can be at %s", roce.ErrInvalid, to)
	}
	source, err := m.source(to, local)
	if err != nil {
		return cm.Path{}, err
	}
	path := cm.Path{
		Local: source, Remote: remote, FlowLabel: label, TClass: tclass, HopLimit: hopLimit,
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

// portOf is the port of a service ID, 0 of one that is none of rdma_cm.
func portOf(service cm.ServiceID) uint16 {
	if !service.IP() {
		return 0
	}
	return service.Port()
}

// flowLabel is that of a path to a service: of both ports, as with rdma_cm. Where there are
// none the QP numbers choose the path of the connection.
func flowLabel(port uint16, service cm.ServiceID) uint32 {
	if !service.IP() {
		return 0
	}
	return cm.FlowLabelOf(port, service.Port())
}

// hopLimit is that of all MADs and connections.
const hopLimit = 64

// ephemeral draws a source port (RFC 6335, the dynamic ports).
func (m *Manager) ephemeral() uint16 { return 0xc000 | uint16(m.rand.Uint64()&0x3fff) }
