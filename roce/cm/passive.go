package cm

import (
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// handleREQ takes a request for a connection.
func (m *Machine) handleREQ(now clock.Time, from Path, tid uint64, mad []byte) {
	r, _ := ParseREQ(mad)
	if c := m.requests[requestOf(&from, &r)]; c != nil && m.repeatedREQ(c, &from) {
		return
	}
	if m.stale(now, &from, r.LocalCAGUID, r.LocalCommID, r.LocalQPN) {
		m.refuse(&from, tid, &r, ReasonStaleConn, nil)
		return
	}
	l := m.listenerFor(r.ServiceID, false, from.Local.Addr())
	if l == nil {
		m.count.Inc(NoListener)
		m.refuse(&from, tid, &r, ReasonInvalidServiceID, nil)
		return
	}
	header, private, ok := splitIPHeader(r.ServiceID, &from, r.Private[:])
	reason, info := m.checkREQ(l, &from, &r)
	switch {
	case reason != ReasonNone:
	case !ok:
		reason = ReasonConsumer
	case len(m.conns) >= m.config.MaxConnections:
		reason = ReasonNoResources
	default:
		m.makeRoom(now, l)
		m.request(now, from, tid, l, &r, header, private)
		return
	}
	m.count.Inc(RequestsRefused)
	m.refuse(&from, tid, &r, reason, info)
}

// refuse answers a REQ of which nothing is kept.
func (m *Machine) refuse(from *Path, tid uint64, r *REQ, reason Reason, info []byte) {
	rej := REJ{RemoteCommID: r.LocalCommID, Reason: reason}
	rej.InfoLen = uint8(copy(rej.Info[:], info))
	m.send(from, tid, &rej)
}

// checkREQ says what is wrong with a REQ, and what would be right.
func (m *Machine) checkREQ(l *listener, from *Path, r *REQ) (Reason, []byte) {
	_, member := m.config.PKeys.Find(r.PKey)
	switch {
	case r.service() != l.Transport:
		return ReasonInvalidTransport, nil
	case r.Primary.LocalGID != from.Remote || r.Primary.RemoteGID != from.Local,
		!member:
		// No reason is for a partition; Linux gives this one.
		return ReasonInvalidGID, from.Local[:]
	case r.PathMTU.Bytes() == 0 || r.PathMTU > m.config.MTU:
		return ReasonInvalidMTU, []byte{byte(m.config.MTU)}
	case reserved(r.LocalQPN):
		return ReasonNoQP, nil
	}
	return ReasonNone, nil
}

// stale reports whether there is a connection already with the communication ID or the
// QP of a peer that a message names (IBA 12.9.8.3). If it is established, the peer has
// lost it, and it is ended. That is believed of the station alone by which the connection was
// made, see peerKey: what a host has lost that came back by another one ends when its packets
// find nobody.
func (m *Machine) stale(now clock.Time, from *Path, guid uint64, id, qpn uint32) bool {
	c := m.peers[peerKey{from.Via, from.Remote, guid, id}]
	if c == nil {
		c = m.peerQPs[peerKey{from.Via, from.Remote, guid, qpn}]
	}
	if c == nil {
		return false
	}
	m.count.Inc(StaleRejected)
	if c.state == StateEstablished {
		m.release(now, c, nil)
	}
	return true
}

// repeatedREQ answers the REQ that began a connection, and came again, perhaps by another
// station. It reports false when the connection is over.
func (m *Machine) repeatedREQ(c *conn, from *Path) bool {
	if !c.matches(from) {
		return false
	}
	switch c.state {
	case StateREQRcvd:
		m.setState(c, StateMRAREQSent)
		m.sendKept(c, c.tid, m.newMRA(c, SubjectREQ))
	case StateMRAREQSent, StateREPSent:
		m.repeat(c)
	case StateMRAREPRcvd, StateEstablished:
	default:
		return false
	}
	m.count.Inc(rxDup(AttributeREQ))
	return true
}

// newMRA makes an MRA.
func (m *Machine) newMRA(c *conn, s Subject) *MRA {
	return &MRA{
		LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, Subject: s,
		ServiceTimeout: m.config.MRATimeout,
	}
}

// makeRoom drops a request when too many wait for an answer, of the listener or of all. Those that
// were answered stay: they are of peers that the application took, and not for strangers to end.
func (m *Machine) makeRoom(now clock.Time, l *listener) {
	if l.waiting >= l.Backlog {
		m.count.Inc(BacklogDropped)
		m.evict(now, m.victim(func(c *conn) bool {
			return c.listener == l && inBacklog.has(c.state)
		}))
	}
	if m.waiting >= m.config.MaxHalfOpen {
		m.count.Inc(HalfOpenDropped)
		m.evict(now, m.victim(func(c *conn) bool { return inBacklog.has(c.state) }))
	}
}

// makeRoomAnswered drops one of those that were answered when there are too many.
func (m *Machine) makeRoomAnswered(now clock.Time) {
	if m.halfOpen.Len()-m.waiting >= m.config.MaxHalfOpen {
		m.count.Inc(HalfOpenDropped)
		m.evict(now, m.victim(func(c *conn) bool { return !inBacklog.has(c.state) }))
	}
}

// evict drops a request for a newer one. The peer is not told if it heard nothing of
// us: an answer to each request of a flood would double it, and a true peer asks
// again. One that got an MRA would ask again only after a minute, so it is told.
func (m *Machine) evict(now clock.Time, c *conn) {
	if c.state != StateREQRcvd {
		m.reject(c, ReasonNoResources, nil, nil)
	}
	m.tell(Event{Type: EventUnreachable, ID: c.id, Reason: ReasonNoResources})
	m.finish(now, c)
}

// request takes a new request.
func (m *Machine) request(
	now clock.Time, from Path, tid uint64, l *listener, r *REQ, h IPHeader, private []byte,
) {
	c := m.newConn(from, StateREQRcvd)
	c.tid, c.listener = tid, l
	l.waiting++
	m.waiting++
	m.addHalfOpen(c)
	m.setPeer(c, from.Via, r.LocalCAGUID, r.LocalCommID, r.LocalQPN)
	c.request = requestOf(&from, r)
	m.requests[c.request] = c
	c.life = AckTimeout(max(r.Primary.LocalAckTimeout, 1)-1, m.config.AckDelay)
	own := AckTimeout(m.config.PacketLifeTime, m.config.AckDelay)
	c.params = QPParams{
		Transport: r.service(), Path: pathOf(&r.Primary), PathMTU: r.PathMTU,
		DestQPN: r.LocalQPN, SQPSN: r.StartingPSN,
		MaxRdAtomic: r.ResponderRes, MaxDestRdAtomic: r.InitiatorDepth,
		Timeout:  believed(c.life, own),
		RetryCnt: r.RetryCount, RNRRetry: r.RNRRetryCount, FlowControl: r.FlowControl, SRQ: r.SRQ,
		Extensions: extensionsOf(r.VendorID, r.Options),
	}
	c.params.Path.PKeyIndex, _ = m.config.PKeys.Find(r.PKey) // it was checked
	c.retries = r.MaxCMRetries
	c.interval = timeoutOf(max(minTimeout, min(r.LocalTimeout, maxTimeout)))
	if r.Alternate != (PathFields{}) {
		c.failover = 1 // there are no alternate paths here
	}
	m.timers.Set(&c.timer, now+requestLife)
	m.tell(Event{
		Type: EventConnectRequest, ID: c.id, Listener: l.id, Service: r.ServiceID, IP: h,
		Path: from, Transport: c.params.Transport, Params: c.params, Private: clone(private),
	})
}

// Vouch says what is known of the host that a connection request claims to come from, and the
// station on the link by which it is reached: what it is sent from now on goes there, so that who
// asked in its name does not hear it.
func (m *Machine) Vouch(id ID, rank Rank, hop [6]byte) error {
	c, err := m.conn(id, inBacklog)
	if err != nil {
		return err
	}
	if rank >= rankEnd {
		return fmt.Errorf("%w: rank %d", ErrInvalid, rank)
	}
	c.rank, c.path.Via.MAC = rank, hop
	return nil
}

// Accept says how a request is accepted.
type Accept struct {
	QPN            uint32
	PSN            wire.PSN // the first that our QP expects
	ResponderRes   uint8    // READs and atomics that we serve at once
	InitiatorDepth uint8    // READs and atomics that we will have outstanding
	RNRRetryCount  uint8    // 0 to 7, 7 is for ever
	FlowControl    bool     // we count credits
	SRQ            bool     // our QP has a shared receive queue
	Private        []byte   // at most 196 bytes
	// Extensions are those that both ends are to use, of those that the peer offers.
	Extensions verbs.Extensions
}

// Accept answers a connection request with a REP. Our QP must be in RTS already:
// data may come before EventEstablished does.
func (m *Machine) Accept(now clock.Time, id ID, a Accept) error {
	c, err := m.conn(id, inBacklog)
	if err != nil {
		return err
	}
	if a.QPN > max24 || a.PSN > max24 || a.RNRRetryCount > 7 {
		return fmt.Errorf("%w: QPN 0x%x, PSN 0x%x, RNR retries %d", ErrInvalid, a.QPN,
			uint32(a.PSN), a.RNRRetryCount)
	}
	if err := clip(a.Private, PrivateREP); err != nil {
		return err
	}
	if a.Extensions&^c.params.Extensions != 0 {
		return fmt.Errorf("%w: extensions %s, the peer offers %s", ErrInvalid, a.Extensions,
			c.params.Extensions)
	}
	m.makeRoomAnswered(now)
	c.qpn = a.QPN
	m.setState(c, StateREPSent)
	r := REP{
		LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, StartingPSN: a.PSN,
		ResponderRes: a.ResponderRes, InitiatorDepth: a.InitiatorDepth,
		TargetAckDelay: m.config.AckDelay, Failover: c.failover, FlowControl: a.FlowControl,
		RNRRetryCount: a.RNRRetryCount, SRQ: a.SRQ, LocalCAGUID: m.config.CAGUID,
	}
	r.setQPN(c.params.Transport, a.QPN)
	r.VendorID, r.Options = optionsOf(a.Extensions)
	if c.params.Transport == TransportXRC {
		// It only answers, and all that it receives is for shared receive queues.
		r.InitiatorDepth, r.FlowControl, r.SRQ = 0, false, true
	}
	copy(r.Private[:], a.Private)
	m.sendKept(c, c.tid, &r)
	m.armTimer(now, c)
	return nil
}

// Reject refuses a connection request, or the answer to our own, with a reason,
// ReasonConsumer for one of the application's; additional information of at most
// 72 bytes; and private data of at most 148.
func (m *Machine) Reject(now clock.Time, id ID, reason Reason, info, private []byte) error {
	c, err := m.conn(id, inBacklog|of(StateREPRcvd, StateMRAREPSent))
	if err != nil {
		return err
	}
	if len(info) > InfoREJ || reason == ReasonNone {
		return fmt.Errorf("%w: %s, %d bytes of information", ErrInvalid, reason, len(info))
	}
	if err := clip(private, PrivateREJ); err != nil {
		return err
	}
	m.reject(c, reason, info, private)
	m.finish(now, c)
	return nil
}

// handleRTU takes an RTU: the active end is ready.
func (m *Machine) handleRTU(from Path, mad []byte) {
	r, _ := ParseRTU(mad)
	c := m.find(&from, r.RemoteCommID, r.LocalCommID)
	switch {
	case c == nil:
	case c.state == StateREPSent || c.state == StateMRAREPRcvd:
		m.established(c, clone(r.Private[:]))
	case c.state == StateEstablished && !c.active:
		m.count.Inc(rxDup(AttributeRTU))
	default:
		m.count.Inc(DropState)
	}
}

// CommEst says that the QP of a passive connection received something while it
// waits for the RTU (verbs.EventCommEst): that is as good as one.
func (m *Machine) CommEst(id ID) error {
	c, err := m.conn(id, of(StateREPSent, StateMRAREPRcvd))
	if err != nil {
		return err
	}
	m.established(c, nil)
	return nil
}

// handleMRA takes an MRA: the answer takes longer. Each message has one MRA that
// counts, however many come.
func (m *Machine) handleMRA(now clock.Time, from Path, mad []byte) {
	r, _ := ParseMRA(mad)
	c := m.find(&from, r.RemoteCommID, r.LocalCommID)
	if c == nil {
		return
	}
	switch {
	case r.Subject == SubjectREQ && c.state == StateREQSent:
		m.setState(c, StateMRAREQRcvd)
	case r.Subject == SubjectREP && c.state == StateREPSent:
		m.setState(c, StateMRAREPRcvd)
	case c.state == StateMRAREQRcvd || c.state == StateMRAREPRcvd:
		m.count.Inc(rxDup(AttributeMRA))
		return
	default:
		m.count.Inc(DropState)
		return
	}
	m.timers.Set(&c.timer, now+timeoutOf(min(r.ServiceTimeout, maxService))+c.interval)
}
