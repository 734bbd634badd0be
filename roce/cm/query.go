package cm

import (
	"fmt"

	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/internal/timer"
	"xroce/roce/wire"
)

// A query is a service ID resolution, ours or of a peer.
type query struct {
	id      ID
	path    Path
	service ServiceID
	left    uint8   // repetitions of ours
	key     sidrKey // of a peer's
	tid     uint64  // the same

	timer    timer.Timer
	mad      [MADLen]byte     // of ours; of a peer's the response
	queue    list.Link[query] // of peers'
	link     *source          // the station that asked, of one that waits
	via      Via              // the same: answers may go elsewhere by now
	answered bool             // the response stays for those that come again
}

// sidrKey names a SIDR request of a peer.
type sidrKey struct {
	gid wire.GID
	id  uint32
}

// Lookup says what datagram service is looked for.
type Lookup struct {
	Path    Path // HopLimit 0 is 64
	Service ServiceID
	SrcPort uint16 // ours, for a service of rdma_cm
	// Private is private data for the peer, at most 216 bytes, 180 to a service
	// of rdma_cm.
	Private []byte
}

// Lookup asks a peer for the QP of a datagram service with a SIDR_REQ. Its ID
// names the request until EventSIDRResponse or EventUnreachable.
func (m *Machine) Lookup(now clock.Time, p Lookup) (ID, error) {
	limit := PrivateSIDRREQ
	if p.Service.IP() {
		limit -= IPHeaderLen
	}
	if err := clip(p.Private, limit); err != nil {
		return 0, err
	}
	if err := p.Path.check(&m.config); err != nil {
		return 0, err
	}
	if len(m.queries) >= m.config.MaxConnections {
		return 0, ErrFull
	}
	if p.Path.HopLimit == 0 {
		p.Path.HopLimit = defaultHopLimit
	}
	q := &query{id: m.draw(), path: p.Path, service: p.Service, left: m.config.MaxRetries}
	q.timer.Run = func(now clock.Time) { m.expireLookup(now, q) }
	m.queries[q.id] = q
	pkey := m.config.PKeys[p.Path.PKeyIndex]
	r := SIDRREQ{RequestID: uint32(q.id), PKey: pkey, ServiceID: p.Service}
	private := r.Private[:]
	if p.Service.IP() {
		ipHeaderOf(&p.Path, p.SrcPort).Put(private)
		private = private[IPHeaderLen:]
	}
	copy(private, p.Private)
	putMessage(q.mad[:], m.tid(q.id), &r)
	m.count.Inc(txMsgs(AttributeSIDRREQ))
	m.post(&q.path, &q.mad)
	m.timers.Set(&q.timer, now+timeoutOf(m.config.ResponseTimeout))
	return q.id, nil
}

// expireLookup asks again, or gives up.
func (m *Machine) expireLookup(now clock.Time, q *query) {
	if q.left > 0 {
		q.left--
		m.count.Inc(txRetries(AttributeSIDRREQ))
		m.post(&q.path, &q.mad)
		m.timers.Set(&q.timer, now+timeoutOf(m.config.ResponseTimeout))
		return
	}
	m.count.Inc(Timeouts)
	m.tell(Event{Type: EventUnreachable, ID: q.id, Reason: ReasonTimeout})
	m.endQuery(q)
}

// endQuery forgets a query.
func (m *Machine) endQuery(q *query) {
	m.timers.Stop(&q.timer)
	delete(m.queries, q.id)
	if m.removeSIDRWaiting(q) || m.sidrAnswered.Remove(&q.queue) {
		delete(m.sidrRequests, q.key)
	}
}

// CancelLookup forgets a request of ours, without an event, or one of a peer,
// without a SIDR_REP.
func (m *Machine) CancelLookup(id ID) error {
	q := m.queries[id]
	if q == nil || q.answered {
		return fmt.Errorf("%w: lookup 0x%08x", ErrUnknown, uint32(id))
	}
	m.endQuery(q)
	return nil
}

// handleSIDRREP takes the response to a request of ours.
func (m *Machine) handleSIDRREP(from Path, mad []byte) {
	r, _ := ParseSIDRREP(mad)
	q := m.queries[ID(r.RequestID)]
	switch {
	case q == nil || q.queue.In(), r.Status == SIDRSuccess && r.ServiceID != q.service:
		m.count.Inc(DropUnknown)
	case q.path.Remote != from.Remote || q.path.Local != from.Local:
		m.count.Inc(DropWrongSource)
	default:
		if r.Status == SIDRSuccess && reserved(r.QPN) {
			r.Status = SIDRNoQP // it names none that datagrams can go to
		}
		m.tell(Event{
			Type: EventSIDRResponse, ID: q.id, Service: q.service, Path: q.path,
			Status: r.Status, QPN: r.QPN, QKey: r.QKey,
			Info: clone(r.Info[:min(int(r.InfoLen), InfoSIDRREP)]), Private: clone(r.Private[:]),
		})
		m.endQuery(q)
	}
}

// handleSIDRREQ takes a request of a peer.
func (m *Machine) handleSIDRREQ(now clock.Time, from Path, tid uint64, mad []byte) {
	r, _ := ParseSIDRREQ(mad)
	key := sidrKey{from.Remote, r.RequestID}
	if m.repeatedSIDR(&from, tid, key, r.ServiceID) {
		return
	}
	no := SIDRREP{RequestID: r.RequestID, ServiceID: r.ServiceID, Status: SIDRUnsupported}
	l := m.listenerFor(r.ServiceID, true, from.Local.Addr())
	if l == nil {
		m.count.Inc(NoListener)
		m.send(&from, tid, &no)
		return
	}
	header, private, ok := splitIPHeader(r.ServiceID, &from, r.Private[:])
	if _, member := m.config.PKeys.Find(r.PKey); !ok || !member {
		no.Status = SIDRReject
		m.count.Inc(RequestsRefused)
		m.send(&from, tid, &no)
		return
	}
	if m.sidrWaiting.Len() >= m.config.MaxHalfOpen {
		m.count.Inc(HalfOpenDropped)
		m.dropSIDRRequest(m.sidrVictim(), ReasonNoResources)
	}
	q := &query{id: m.draw(), path: from, service: r.ServiceID, key: key, tid: tid}
	q.timer.Run = func(clock.Time) {
		m.count.Inc(RequestsExpired)
		m.dropSIDRRequest(q, ReasonTimeout)
	}
	m.queries[q.id], m.sidrRequests[key] = q, q
	m.addSIDRWaiting(q)
	m.timers.Set(&q.timer, now+requestLife)
	m.tell(Event{
		Type: EventSIDRRequest, ID: q.id, Listener: l.id, Service: r.ServiceID, IP: header,
		Path: from, Private: clone(private),
	})
}

// repeatedSIDR reports whether a request came before, and answers it again if it was
// answered: the response was lost. A request ID that is used anew asks anew.
func (m *Machine) repeatedSIDR(from *Path, tid uint64, key sidrKey, s ServiceID) bool {
	q := m.sidrRequests[key]
	switch {
	case q == nil:
		return false
	case q.path.Local != from.Local || q.tid != tid || q.service != s:
		if q.answered {
			m.endQuery(q)
		} else {
			m.dropSIDRRequest(q, ReasonNoResources)
		}
		return false
	}
	m.count.Inc(rxDup(AttributeSIDRREQ))
	if q.answered {
		m.count.Inc(txRetries(AttributeSIDRREP))
		m.post(&q.path, &q.mad)
	}
	return true
}

// dropSIDRRequest ends a peer's request that the application has not answered. The
// peer repeats it.
func (m *Machine) dropSIDRRequest(q *query, reason Reason) {
	m.tell(Event{Type: EventUnreachable, ID: q.id, Reason: reason})
	m.endQuery(q)
}

// A SIDRResponse says what the SIDR_REP to a request has in it.
type SIDRResponse struct {
	Status  SIDRStatus
	QPN     uint32 // of SIDRSuccess; otherwise 0 is sent
	QKey    uint32 // the same; QKeyUDP is what rdma_cm takes
	Info    []byte // additional information, at most 72 bytes
	Private []byte // at most 136 bytes
	// Hop is the station on the link that it goes to, zeros for the one that asked.
	Hop [6]byte
}

// RespondSIDR sends the SIDR_REP to a request of EventSIDRRequest. Its ID is free; the
// response is sent again, without an event, when the peer repeats the request.
func (m *Machine) RespondSIDR(now clock.Time, id ID, p SIDRResponse) error {
	q := m.queries[id]
	if q == nil || !q.queue.In() || q.answered {
		return fmt.Errorf("%w: SIDR request 0x%08x", ErrUnknown, uint32(id))
	}
	if p.QPN > max24 || len(p.Info) > InfoSIDRREP {
		return fmt.Errorf("%w: QPN 0x%x, %d bytes of information", ErrInvalid, p.QPN, len(p.Info))
	}
	if err := clip(p.Private, PrivateSIDRREP); err != nil {
		return err
	}
	r := SIDRREP{RequestID: q.key.id, Status: p.Status, ServiceID: q.service}
	if p.Status == SIDRSuccess {
		r.QPN, r.QKey = p.QPN, p.QKey
	}
	r.InfoLen = uint8(copy(r.Info[:], p.Info))
	copy(r.Private[:], p.Private)
	putMessage(q.mad[:], q.tid, &r)
	if p.Hop != [6]byte{} {
		q.path.Via.MAC = p.Hop
	}
	m.count.Inc(txMsgs(AttributeSIDRREP))
	m.post(&q.path, &q.mad)
	m.keepSIDRResponse(now, q)
	return nil
}

// keepSIDRResponse remembers a response as long as the peer may repeat its request because it
// did not come. A peer that asks more often than others drives out responses at most.
func (m *Machine) keepSIDRResponse(now clock.Time, q *query) {
	m.removeSIDRWaiting(q)
	if m.sidrAnswered.Len() >= m.config.MaxHalfOpen {
		m.endQuery(m.sidrAnswered.First())
	}
	q.answered = true
	m.sidrAnswered.Push(&q.queue, q)
	q.timer.Run = func(clock.Time) { m.endQuery(q) }
	m.timers.Set(&q.timer, now+2*timeoutOf(m.config.ResponseTimeout))
}
