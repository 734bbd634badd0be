package cm

import (
	"context"
	"fmt"
	"net/netip"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/cm"
)

// Datagrams is a datagram service: what it tells peers that look it up.
type Datagrams struct {
	// QP is the UD queue pair that datagrams are for, in RTS. Its Q_Key is told;
	// rdma_cm takes cm.QKeyUDP of roce/cm.
	QP *engine.QP
	// Private is private data for every peer, at most 136 bytes.
	Private []byte
	// Allow says who may know, and may be nil for everybody; private is what the
	// peer says, 180 bytes padded with zeros. It must be quick, and not use the
	// manager.
	Allow func(peer netip.AddrPort, private []byte) bool
	// Answer does both instead: it says who may know, and what private data the peer gets, also
	// with a refusal (RejectedError.Private there). The same holds for it as for Allow.
	Answer func(from Asker, private []byte) (answer []byte, ok bool)

	qkey uint32
}

// An Asker is who asks: what he says that his address is, and the station on the link that his
// message came from.
type Asker struct {
	Addr netip.AddrPort
	Via  cm.Via
}

// ListenDatagram answers lookups of a port of rdma_cm's UDP space, until the
// listener is closed; addresses are those of Listen. There is nothing to accept:
// datagrams just come.
func (m *Manager) ListenDatagram(at netip.AddrPort, d Datagrams) (*Listener, error) {
	if d.QP == nil || d.QP.Type() != roce.TypeUD {
		return nil, fmt.Errorf("%w: a datagram service has a QP of type UD", roce.ErrInvalid)
	}
	if len(d.Private) > cm.PrivateSIDRREP {
		return nil, fmt.Errorf("%w: %d bytes of private data, %d fit", roce.ErrInvalid,
			len(d.Private), cm.PrivateSIDRREP)
	}
	d.qkey = d.QP.Query().QKey
	return m.listen(at.Addr(), cm.Listen{Service: cm.ServiceIDOf(cm.PortSpaceUDP, at.Port())}, &d)
}

// response responds to a lookup, by the first hop to the host from which it claims to come: who
// asks in its name does not learn the Q_Key. Without a way it is refused, and nobody asked. The
// caller holds the manager's lock.
func (d *Datagrams) response(m *Manager, e cm.Event, hop [6]byte, err error) {
	private, ok := d.Private, true
	switch {
	case err != nil:
		private, ok = nil, false
	case d.Answer != nil:
		private, ok = d.Answer(Asker{e.IP.Src, e.Path.Via}, e.Private)
		private = private[:min(len(private), cm.PrivateSIDRREP)]
	case d.Allow != nil && !d.Allow(e.IP.Src, e.Private):
		private, ok = nil, false
	}
	a := cm.SIDRResponse{QPN: d.QP.QPN(), QKey: d.qkey, Private: private, Hop: hop}
	if !ok {
		a = cm.SIDRResponse{Status: cm.SIDRReject, Private: private, Hop: hop}
	}
	// It is there and all was checked, so this cannot be refused.
	_ = m.machine.RespondSIDR(m.clock.Now(), e.ID, a)
}

// A Peer is where datagrams of a service go.
type Peer struct {
	AH      *roce.AH
	QPN     uint32
	QKey    uint32
	Private []byte // what the service says: 136 bytes, padded with zeros
}

// Lookup finds the queue pair behind a port of rdma_cm's UDP space, and makes an
// address handle for QPs of a domain; private is for the peer, at most 180 bytes.
// The error is a *RejectedError when the peer refuses or nobody listens,
// ErrTimeout when there is no answer.
func (m *Manager) Lookup(
	ctx context.Context, pd *engine.PD, to netip.AddrPort, private []byte,
) (*Peer, error) {
	return m.LookupIn(ctx, pd, to, 0, private)
}

// LookupIn is Lookup in the partition at an index of the device's table of P_Keys.
func (m *Manager) LookupIn(
	ctx context.Context, pd *engine.PD, to netip.AddrPort, pkeyIndex uint16, private []byte,
) (*Peer, error) {
	service := cm.ServiceIDOf(cm.PortSpaceUDP, to.Port())
	peer, err := m.lookup(ctx, pd, to.Addr(), service, pkeyIndex, private)
	return peer, opError("lookup", addressOf(to.Addr(), service), err)
}

// lookup is Lookup without the address in the error.
func (m *Manager) lookup(
	ctx context.Context, pd *engine.PD, to netip.Addr, service cm.ServiceID, pkeyIndex uint16,
	private []byte,
) (*Peer, error) {
	port := m.ephemeral()
	path, err := m.pathTo(ctx, to, netip.Addr{}, 0, flowLabel(port, service))
	if err != nil {
		return nil, err
	}
	path.PKeyIndex = pkeyIndex
	av, err := m.vector(&path)
	if err != nil {
		return nil, err
	}
	ah, err := m.dev.CreateAH(ctx, pd, av)
	if err != nil {
		return nil, err
	}
	id, response, err := m.ask(cm.Lookup{
		Path: path, Service: service, SrcPort: port, Private: private,
	})
	if err != nil {
		return nil, err
	}
	select {
	case e, ok := <-response:
		switch {
		case !ok:
			return nil, ErrClosed
		case e.Type == cm.EventUnreachable:
			return nil, fmt.Errorf("%w: %s", ErrTimeout, e.Reason)
		case e.Status != cm.SIDRSuccess:
			return nil, &RejectedError{Status: e.Status, Private: e.Private}
		}
		return &Peer{AH: ah, QPN: e.QPN, QKey: e.QKey, Private: e.Private}, nil
	case <-ctx.Done():
		m.forget(id)
		return nil, ctx.Err()
	}
}

// ask sends the SIDR_REQ.
func (m *Manager) ask(l cm.Lookup) (cm.ID, <-chan cm.Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return 0, nil, ErrClosed
	}
	id, err := m.machine.Lookup(m.clock.Now(), l)
	if err != nil {
		return 0, nil, err
	}
	response := make(chan cm.Event, 1)
	m.lookups[id] = response
	m.dispatch()
	m.wake()
	return id, response, nil
}

// endLookup gives the event to the Lookup that waits for it. The caller holds mu.
func (m *Manager) endLookup(e cm.Event) {
	if response := m.lookups[e.ID]; response != nil {
		delete(m.lookups, e.ID)
		response <- e // it has room for the one event
	}
}

// forget cancels a lookup whose caller gave up.
func (m *Manager) forget(id cm.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lookups[id] != nil {
		delete(m.lookups, id)
		// It is there, so this cannot be refused.
		_ = m.machine.CancelLookup(id)
	}
}
