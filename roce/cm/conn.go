package cm

import (
	"encoding/binary"
	"fmt"
	"slices"

	"xroce/roce/clock"
	"xroce/roce/internal/list"
	"xroce/roce/internal/timer"
	"xroce/roce/wire"
)

// A conn is one connection, from REQ to the end of time-wait.
type conn struct {
	id        ID
	remoteID  uint32 // once peerKnown
	peerKnown bool   // the peer's ID and queue pair are known
	active    bool   // we connect
	state     State
	path      Path   // of the MADs
	tid       uint64 // of the REQ
	listener  *listener
	peer      [2]peerKey // as which it is in peers and peerQPs, once peerKnown
	request   requestKey // as which it is in requests, if that began it

	qpn      uint32 // ours
	life     uint8  // local ACK timeout code, for time-wait
	failover uint8  // what a REP says of the alternate path
	params   QPParams

	retries  uint8      // repetitions of one message
	left     uint8      // of these
	interval clock.Time // between them

	timer timer.Timer
	kept  Attribute // the message that is repeated, 0 for none
	mad   [MADLen]byte
	queue list.Link[conn] // while half open, or over
	// While half open, as the request of a peer:
	host, link *source // what came from the same GID, and from the same station
	rank       Rank    // what is known of the peer
}

// matches reports whether a MAD came from where those of the connection go.
func (c *conn) matches(from *Path) bool {
	return c.path.Remote == from.Remote && c.path.Local == from.Local
}

// newConn adds a connection.
func (m *Machine) newConn(path Path, state State) *conn {
	c := &conn{id: m.draw(), path: path, state: state}
	c.timer.Run = func(now clock.Time) { m.expire(now, c) }
	m.conns[c.id] = c
	return c
}

// setPeer notes who the peer is, which must not be known already, and its station.
func (m *Machine) setPeer(c *conn, via Via, guid uint64, id, qpn uint32) {
	c.remoteID, c.peerKnown = id, true
	c.peer = [2]peerKey{
		{via, c.path.Remote, guid, id}, {via, c.path.Remote, guid, qpn},
	}
	m.peers[c.peer[0]], m.peerQPs[c.peer[1]] = c, c
}

// setState changes the state and the counts that depend on it. The timer is that of a
// state: the caller arms or stops it.
func (m *Machine) setState(c *conn, to State) {
	from := c.state
	if !transitions[from].has(to) {
		panic(fmt.Sprintf("cm: connection goes from %s to %s", from, to))
	}
	c.state = to
	if inBacklog.has(from) && !inBacklog.has(to) {
		c.listener.waiting--
		m.waiting--
	}
	if halfOpen.has(from) && !halfOpen.has(to) {
		m.removeHalfOpen(c)
	}
	switch was, is := over.has(from), over.has(to); {
	case was && !is:
		m.over.Remove(&c.queue)
	case is && !was:
		m.over.Push(&c.queue, c)
		m.forgetOldest()
	}
}

// forgetOldest forgets a connection that has ended when there are too many: who connects and
// hangs up, and does not confirm it, has no more of them remembered.
func (m *Machine) forgetOldest() {
	if m.over.Len() <= m.config.MaxOver {
		return
	}
	c := m.over.First()
	m.count.Inc(OverDropped)
	if c.state == StateDREQSent {
		m.tell(Event{Type: EventDisconnected, ID: c.id})
		m.setState(c, StateTimewait)
	}
	m.forget(c)
}

// armTimer arms the timer of a message that wants an answer.
func (m *Machine) armTimer(now clock.Time, c *conn) {
	c.left = c.retries
	m.timers.Set(&c.timer, now+c.interval)
}

// established notes that the active end is ready.
func (m *Machine) established(c *conn, private []byte) {
	m.setState(c, StateEstablished)
	m.timers.Stop(&c.timer)
	c.kept, c.path.Via.MAC = 0, [6]byte{}
	m.tell(Event{Type: EventEstablished, ID: c.id, Private: private})
}

// enterTimewait begins the time-wait: packets of the connection may still be under way.
func (m *Machine) enterTimewait(now clock.Time, c *conn) {
	m.setState(c, StateTimewait)
	c.kept = 0
	m.timers.Set(&c.timer, now+timeoutOf(min(c.life, maxTimeout))+timewaitExtra)
}

// forget ends a connection.
func (m *Machine) forget(c *conn) {
	m.setState(c, StateGone)
	m.timers.Stop(&c.timer)
	delete(m.conns, c.id)
	if c.peerKnown {
		delete(m.peers, c.peer[0])
		delete(m.peerQPs, c.peer[1])
	}
	if m.requests[c.request] == c { // no other one took its place once it was over
		delete(m.requests, c.request)
	}
	m.tell(Event{Type: EventTimewaitExit, ID: c.id})
}

// finish ends a connection that failed: at once when no packet can be under way.
func (m *Machine) finish(now clock.Time, c *conn) {
	if inBacklog.has(c.state) {
		m.forget(c)
		return
	}
	m.enterTimewait(now, c)
}

// expire does what the timer of a connection is for.
func (m *Machine) expire(now clock.Time, c *conn) {
	switch c.state {
	case StateTimewait:
		m.forget(c)
		return
	case StateREQSent, StateMRAREQRcvd, StateREPSent, StateMRAREPRcvd, StateDREQSent:
		if c.left > 0 {
			c.left--
			m.timers.Set(&c.timer, now+c.interval)
			m.repeat(c)
			return
		}
		m.count.Inc(Timeouts)
	default:
		m.count.Inc(RequestsExpired)
	}
	if c.state == StateDREQSent {
		m.tell(Event{Type: EventDisconnected, ID: c.id})
		m.enterTimewait(now, c)
		return
	}
	m.reject(c, ReasonTimeout, nil, nil)
	m.tell(Event{Type: EventUnreachable, ID: c.id, Reason: ReasonTimeout})
	m.finish(now, c)
}

// reject sends a REJ for a connection in whatever state.
func (m *Machine) reject(c *conn, reason Reason, info, private []byte) {
	r := REJ{
		LocalCommID: uint32(c.id), RemoteCommID: c.remoteID, Reason: reason, Subject: SubjectNone,
	}
	switch c.state {
	case StateREQRcvd, StateMRAREQSent:
		r.Subject = SubjectREQ
	case StateREPRcvd, StateMRAREPSent:
		r.Subject = SubjectREP
	}
	if reason == ReasonTimeout && info == nil {
		// The peer may not know our communication ID; the GUID says whose REJ it is.
		info = binary.BigEndian.AppendUint64(nil, m.config.CAGUID)
	}
	r.InfoLen = uint8(copy(r.Info[:], info))
	copy(r.Private[:], private)
	m.send(&c.path, c.tid, &r)
}

// conn looks up a connection for a call of the owner, in certain states.
func (m *Machine) conn(id ID, in states) (*conn, error) {
	c := m.conns[id]
	if c == nil {
		return nil, fmt.Errorf("%w: connection 0x%08x", ErrUnknown, uint32(id))
	}
	if !in.has(c.state) {
		return nil, fmt.Errorf("%w: connection 0x%08x is in %s", ErrState, uint32(id), c.state)
	}
	return c, nil
}

// clip tests the length of private data.
func clip(private []byte, limit int) error {
	if len(private) > limit {
		return fmt.Errorf("%w: %d bytes of private data, %d fit", ErrInvalid, len(private), limit)
	}
	return nil
}

// clone copies a borrowed slice for an event.
func clone(b []byte) []byte { return slices.Clone(b) }

// uint32FromData reads the first field of a message.
func uint32FromData(mad []byte) uint32 { return binary.BigEndian.Uint32(mad[HeaderLen:]) }

// pathOf is the way back of a REQ's primary path, for the queue pair.
func pathOf(p *PathFields) Path {
	return Path{
		Local: p.RemoteGID, Remote: p.LocalGID, FlowLabel: p.FlowLabel, TClass: p.TrafficClass,
		SL:       p.SL & 7, // RoCE has 8 of the 16: as many as a VLAN tag has priorities
		HopLimit: max(p.HopLimit, 1),
	}
}

// reserved reports whether a QP number is none that can be connected to.
func reserved(qpn uint32) bool { return qpn < 2 || qpn >= wire.MulticastQP }
