package cm

import (
	"fmt"
	"net/netip"

	"xroce/roce/clock"
	"xroce/roce/verbs"
	"xroce/roce/wire"
)

// Connect says what a connection is to be.
type Connect struct {
	Path    Path // HopLimit 0 is 64
	Service ServiceID
	// SrcPort is ours, for a service of rdma_cm. Path.FlowLabel 0 is made of both
	// ports then, as Linux does it.
	SrcPort uint16

	QPN            uint32
	PSN            wire.PSN // the first that our QP expects
	Transport      Transport
	PathMTU        wire.MTU
	ResponderRes   uint8 // READs and atomics that we serve at once
	InitiatorDepth uint8 // READs and atomics that we want to have outstanding
	RetryCount     uint8 // 0 to 7; Linux takes 7
	RNRRetryCount  uint8 // 0 to 7, 7 is for ever
	AckTimeout     uint8 // local ACK timeout code, 0 is of Config.PacketLifeTime
	PacketRate     uint8 // IBA rate code, 0 for any
	FlowControl    bool  // we count credits
	SRQ            bool  // our QP has a shared receive queue
	// Extensions are those that we offer, of TransportRC.
	Extensions verbs.Extensions

	// Private is private data for the peer, at most 92 bytes, 56 to a service of
	// rdma_cm.
	Private []byte
}

// Connect begins a connection with a REQ. Its ID names it until
// EventTimewaitExit. EventConnectResponse, EventRejected or EventUnreachable
// comes first.
func (m *Machine) Connect(now clock.Time, p Connect) (ID, error) {
	if err := p.check(&m.config); err != nil {
		return 0, err
	}
	if len(m.conns) >= m.config.MaxConnections {
		return 0, ErrFull
	}
	p.setDefaults(&m.config)
	c := m.newConn(p.Path, StateREQSent)
	c.active, c.qpn, c.life = true, p.QPN, p.AckTimeout
	c.tid = m.tid(c.id)
	c.params = QPParams{
		Transport: p.Transport, Path: p.Path, PathMTU: p.PathMTU, RQPSN: p.PSN,
		RetryCnt: p.RetryCount, Extensions: p.Extensions,
		Timeout: p.AckTimeout, MaxRdAtomic: p.InitiatorDepth, MaxDestRdAtomic: p.ResponderRes,
	}
	c.retries = m.config.MaxRetries
	c.interval = 2*timeoutOf(m.config.PacketLifeTime) + timeoutOf(m.config.ResponseTimeout)
	r := p.request(m, c.id)
	m.sendKept(c, c.tid, &r)
	m.armTimer(now, c)
	return c.id, nil
}

func (p *Connect) check(c *Config) error {
	limit := PrivateREQ
	if p.Service.IP() {
		limit -= IPHeaderLen
	}
	switch {
	case p.QPN > max24 || p.PSN > max24 || p.Path.FlowLabel >= 1<<20:
		return fmt.Errorf("%w: QPN 0x%x, PSN 0x%x, flow label 0x%x", ErrInvalid, p.QPN,
			uint32(p.PSN), p.Path.FlowLabel)
	case !p.Transport.offered() || p.Extensions&^extensionsKnown != 0:
		return fmt.Errorf("%w: transport %d, extensions %s", ErrInvalid, p.Transport, p.Extensions)
	case p.PathMTU.Bytes() == 0 || p.RetryCount > 7 ||
		p.RNRRetryCount > 7 || p.AckTimeout > 31 || p.PacketRate > 0x3f:
		return fmt.Errorf("%w: path MTU code %d, retries %d and %d, ACK timeout %d, rate %d",
			ErrInvalid, uint8(p.PathMTU), p.RetryCount, p.RNRRetryCount, p.AckTimeout,
			p.PacketRate)
	}
	if err := p.Path.check(c); err != nil {
		return err
	}
	return clip(p.Private, limit)
}

// check tests that somebody can answer.
func (p *Path) check(c *Config) error {
	if int(p.PKeyIndex) >= len(c.PKeys) {
		return fmt.Errorf("%w: P_Key index %d is above %d", ErrInvalid, p.PKeyIndex,
			len(c.PKeys)-1)
	}
	for _, g := range []wire.GID{p.Local, p.Remote} {
		if g.IsZero() || g.IsMulticast() || g.IsIPv4() != p.Local.IsIPv4() {
			return fmt.Errorf("%w: no path from %s to %s", ErrInvalid, p.Local, p.Remote)
		}
	}
	return nil
}

func (p *Connect) setDefaults(c *Config) {
	if p.AckTimeout == 0 {
		p.AckTimeout = AckTimeout(c.PacketLifeTime, c.AckDelay)
	}
	if p.Path.HopLimit == 0 {
		p.Path.HopLimit = defaultHopLimit
	}
	if p.Path.FlowLabel == 0 && p.Service.IP() {
		p.Path.FlowLabel = FlowLabelOf(p.SrcPort, p.Service.Port())
	}
}

// FlowLabelOf is the flow label that a connection between two ports has by default,
// as with rdma_cm of Linux.
func FlowLabelOf(src, dst uint16) uint32 { return (uint32(src)*31 + uint32(dst)) & 0xfffff }

// request makes the REQ.
func (p *Connect) request(m *Machine, id ID) REQ {
	r := REQ{
		LocalCommID: uint32(id), ServiceID: p.Service, LocalCAGUID: m.config.CAGUID,
		LocalQPN: p.QPN, ResponderRes: p.ResponderRes, InitiatorDepth: p.InitiatorDepth,
		RemoteTimeout: m.config.ResponseTimeout, LocalTimeout: m.config.ResponseTimeout,
		Transport:         p.Transport & TransportExtended,
		ExtendedTransport: uint8(p.Transport >> extendedShift),
		FlowControl:       p.FlowControl, StartingPSN: p.PSN,
		RetryCount: p.RetryCount, RNRRetryCount: p.RNRRetryCount,
		PKey: m.config.PKeys[p.Path.PKeyIndex], PathMTU: p.PathMTU,
		MaxCMRetries: m.config.MaxRetries, SRQ: p.SRQ,
		Primary: PathFields{
			LocalGID: p.Path.Local, RemoteGID: p.Path.Remote, FlowLabel: p.Path.FlowLabel,
			PacketRate: p.PacketRate, TrafficClass: p.Path.TClass, HopLimit: p.Path.HopLimit,
			SL: p.Path.SL, LocalAckTimeout: p.AckTimeout,
		},
	}
	r.VendorID, r.Options = optionsOf(p.Extensions)
	if p.Transport == TransportXRC {
		// It only asks: what is of a responder has no meaning (IBA A14.4), and Linux says
		// nothing of retries either (kernel drivers/infiniband/core/cm.c, cm_format_req).
		r.ResponderRes, r.RetryCount, r.RNRRetryCount, r.SRQ = 0, 0, 0, false
	}
	// RoCE has no LIDs; the architecture's are the permissive one beyond the
	// subnet and none within it (IBA A17.10.1).
	if p.Path.HopLimit > 1 {
		r.Primary.LocalLID, r.Primary.RemoteLID = 0xffff, 0xffff
	} else {
		r.Primary.SubnetLocal = true
	}
	private := r.Private[:]
	if p.Service.IP() {
		ipHeaderOf(&p.Path, p.SrcPort).Put(private)
		private = private[IPHeaderLen:]
	}
	copy(private, p.Private)
	return r
}

// ipHeaderOf is the header of a request that takes a path.
func ipHeaderOf(p *Path, port uint16) IPHeader {
	return IPHeader{Src: netip.AddrPortFrom(p.Local.Addr(), port), Dst: p.Remote.Addr()}
}

// handleREP takes the answer to our REQ.
func (m *Machine) handleREP(now clock.Time, from Path, tid uint64, mad []byte) {
	r, _ := ParseREP(mad)
	if c := m.conns[ID(r.RemoteCommID)]; c == nil {
		m.count.Inc(DropUnknown)
		m.send(&from, tid, &REJ{
			LocalCommID: r.RemoteCommID, RemoteCommID: r.LocalCommID, Subject: SubjectREP,
			Reason: ReasonInvalidCommID,
		})
		return
	}
	c := m.find(&from, r.RemoteCommID, r.LocalCommID)
	if c == nil {
		return
	}
	switch {
	case c.state == StateREQSent || c.state == StateMRAREQRcvd:
		m.takeREP(now, from, tid, c, &r)
	case c.state == StateREPRcvd:
		m.count.Inc(rxDup(AttributeREP))
		m.setState(c, StateMRAREPSent)
		m.sendKept(c, c.tid, m.newMRA(c, SubjectREP))
	case c.active && (c.state == StateEstablished || c.state == StateMRAREPSent):
		m.count.Inc(rxDup(AttributeREP))
		m.repeat(c)
	default:
		m.count.Inc(DropState)
	}
}

// takeREP takes the first answer.
func (m *Machine) takeREP(now clock.Time, from Path, tid uint64, c *conn, r *REP) {
	p := &c.params
	qpn := r.qpn(p.Transport)
	if m.stale(now, &from, r.LocalCAGUID, r.LocalCommID, qpn) {
		m.send(&from, tid, &REJ{
			LocalCommID: r.RemoteCommID, RemoteCommID: r.LocalCommID, Subject: SubjectREP,
			Reason: ReasonStaleConn,
		})
		return
	}
	m.setPeer(c, from.Via, r.LocalCAGUID, r.LocalCommID, qpn)
	m.setState(c, StateREPRcvd)
	if reason := checkREP(p, r); reason != ReasonNone {
		m.count.Inc(RequestsRefused)
		m.reject(c, reason, nil, nil)
		m.tell(Event{Type: EventRejected, ID: c.id, Reason: reason})
		m.finish(now, c)
		return
	}
	m.timers.Set(&c.timer, now+requestLife)
	p.DestQPN, p.SQPSN = qpn, r.StartingPSN
	p.Extensions = extensionsOf(r.VendorID, r.Options)
	// It answers what we offer and want, so more than that is none of its (IBA 12.7.29, 30).
	p.MaxRdAtomic = min(p.MaxRdAtomic, r.ResponderRes)
	p.MaxDestRdAtomic = min(p.MaxDestRdAtomic, r.InitiatorDepth)
	c.life = AckTimeout(max(p.Timeout, 1)-1, r.TargetAckDelay)
	p.Timeout = believed(c.life, p.Timeout)
	p.RNRRetry, p.FlowControl, p.SRQ = r.RNRRetryCount, r.FlowControl, r.SRQ
	m.tell(Event{
		Type: EventConnectResponse, ID: c.id, Path: c.path, Params: *p,
		Private: clone(r.Private[:]),
	})
}

// checkREP says what is wrong with a REP to what we asked for.
func checkREP(p *QPParams, r *REP) Reason {
	switch {
	case reserved(r.qpn(p.Transport)):
		return ReasonNoQP
	case extensionsOf(r.VendorID, r.Options)&^p.Extensions != 0:
		return ReasonVendorOption // the peer would use what we did not offer
	}
	return ReasonNone
}

// Establish says that the QP of an active connection is in RTS, after
// EventConnectResponse: the peer is told by an RTU, with private data of at most
// 224 bytes.
func (m *Machine) Establish(id ID, private []byte) error {
	c, err := m.conn(id, of(StateREPRcvd, StateMRAREPSent))
	if err != nil {
		return err
	}
	if err := clip(private, PrivateRTU); err != nil {
		return err
	}
	m.setState(c, StateEstablished)
	m.timers.Stop(&c.timer)
	r := RTU{LocalCommID: uint32(c.id), RemoteCommID: c.remoteID}
	copy(r.Private[:], private)
	m.sendKept(c, c.tid, &r)
	return nil
}
