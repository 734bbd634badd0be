package cm

import (
	"encoding/binary"

	"xroce/roce/clock"
)

// Disconnect ends a connection in whatever state it is: one that is established
// with a DREQ and private data of at most 220 bytes, one that is being made with a
// REJ. EventTimewaitExit follows in any case, and before it EventDisconnected when
// the connection was established. It may be called again.
func (m *Machine) Disconnect(now clock.Time, id ID, private []byte) error {
	c, err := m.conn(id, 1<<stateEnd-1)
	if err != nil {
		return err
	}
	if err := clip(private, PrivateDREQ); err != nil {
		return err
	}
	switch c.state {
	case StateDREQSent, StateTimewait:
	case StateEstablished:
		m.release(now, c, private)
	case StateREQSent, StateMRAREQRcvd:
		m.reject(c, ReasonTimeout, nil, nil)
		m.finish(now, c)
	default:
		m.reject(c, ReasonConsumer, nil, nil)
		m.finish(now, c)
	}
	return nil
}

// release asks the peer to end an established connection.
func (m *Machine) release(now clock.Time, c *conn, private []byte) {
	m.setState(c, StateDREQSent)
	r := DREQ{
		LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, RemoteQPN: c.params.DestQPN,
	}
	copy(r.Private[:], private)
	m.sendKept(c, m.tid(c.id), &r)
	m.armTimer(now, c)
}

// handleDREQ takes a request to end a connection. One that we do not know is over, and
// gets a DREP as well: the peer repeats its DREQ until there is one.
func (m *Machine) handleDREQ(now clock.Time, from Path, tid uint64, mad []byte) {
	r, _ := ParseDREQ(mad)
	drep := DREP{LocalCommID: r.RemoteCommID, RemoteCommID: r.LocalCommID}
	c := m.conns[ID(r.RemoteCommID)]
	if c == nil || !c.peerKnown || c.remoteID != r.LocalCommID {
		m.count.Inc(DropUnknown)
		m.send(&from, tid, &drep)
		return
	}
	switch {
	case !c.matches(&from):
		m.count.Inc(DropWrongSource)
	case r.RemoteQPN != c.qpn:
		m.count.Inc(DropWrongQPN)
	case c.state == StateTimewait:
		m.count.Inc(rxDup(AttributeDREQ))
		m.send(&from, tid, &drep)
	case of(StateREPSent, StateMRAREPRcvd, StateEstablished, StateDREQSent).has(c.state):
		m.send(&from, tid, &drep)
		if halfOpen.has(c.state) {
			m.established(c, nil) // who asks for the end was ready: the RTU is late or lost
		}
		m.tell(Event{Type: EventDisconnected, ID: c.id, Private: clone(r.Private[:])})
		m.enterTimewait(now, c)
	default:
		m.count.Inc(DropState)
	}
}

// handleDREP takes the answer to our DREQ.
func (m *Machine) handleDREP(now clock.Time, from Path, mad []byte) {
	r, _ := ParseDREP(mad)
	c := m.find(&from, r.RemoteCommID, r.LocalCommID)
	switch {
	case c == nil:
	case c.state == StateDREQSent:
		m.tell(Event{Type: EventDisconnected, ID: c.id, Private: clone(r.Private[:])})
		m.enterTimewait(now, c)
	default:
		m.count.Inc(DropState)
	}
}

// handleREJ takes a refusal, which ends a connection in any state.
func (m *Machine) handleREJ(now clock.Time, from Path, mad []byte) {
	r, _ := ParseREJ(mad)
	c := m.rejected(&from, &r)
	if c == nil {
		return
	}
	e := Event{
		Type: EventRejected, ID: c.id, Reason: r.Reason,
		Info: clone(r.Info[:min(int(r.InfoLen), InfoREJ)]), Private: clone(r.Private[:]),
	}
	switch c.state {
	case StateTimewait:
		m.count.Inc(DropState)
		return
	case StateEstablished, StateDREQSent:
		e.Type = EventDisconnected
	}
	m.tell(e)
	if c.state == StateREQSent || c.state == StateMRAREQRcvd {
		if r.Reason != ReasonStaleConn {
			// The peer has no queue pair for this: no packet is under way.
			m.forget(c)
			return
		}
	}
	m.finish(now, c)
}

// rejected finds the connection that a REJ is about. A peer that gave up before it
// knew our ID names itself instead. One that knows nothing of our REP may say 0 for its own.
func (m *Machine) rejected(from *Path, r *REJ) *conn {
	if r.RemoteCommID == 0 && r.Reason == ReasonTimeout && r.InfoLen >= 8 {
		guid := binary.BigEndian.Uint64(r.Info[:])
		if c := m.peers[peerKey{from.Via, from.Remote, guid, r.LocalCommID}]; c != nil &&
			c.matches(from) && halfOpen.has(c.state) {
			return c
		}
		m.count.Inc(DropUnknown)
		return nil
	}
	id := r.LocalCommID
	if c := m.conns[ID(r.RemoteCommID)]; c != nil && id == 0 &&
		of(StateREPSent, StateMRAREPRcvd).has(c.state) {
		id = c.remoteID
	}
	return m.find(from, r.RemoteCommID, id)
}

// handleLAP answers that there are no alternate paths.
func (m *Machine) handleLAP(from Path, tid uint64, mad []byte) {
	r, _ := ParseLAP(mad)
	c := m.find(&from, r.RemoteCommID, r.LocalCommID)
	switch {
	case c == nil:
	case r.RemoteQPN != c.qpn:
		m.count.Inc(DropWrongQPN)
	case c.state != StateEstablished:
		m.count.Inc(DropState)
	default:
		m.send(&from, tid, &APR{
			LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, Status: APRUnsupported,
		})
	}
}
