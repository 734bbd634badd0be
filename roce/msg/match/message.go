package match

// A Message is a message in a matcher: one that arrived, or the announcement of one. It
// is embedded in what the caller has for it, an M, and made ready by Init. While it is
// queued it must not move.
type Message[R, M any] struct {
	owner  *M
	peer   *Peer[R, M] // nil when not queued
	bytes  uint32
	places [2]place[Message[R, M]] // among those of the peer, and of any
}

// Init says in what the message is embedded. It may arrive many times then.
func (m *Message[R, M]) Init(owner *M) {
	m.owner = owner
	for i := range m.places {
		m.places[i].of = m
	}
}

// Queued reports whether the message is unexpected: nobody has received or claimed it.
func (m *Message[R, M]) Queued() bool { return m.peer != nil }

// Arrive looks for the receive that was posted first of all that fit. It takes that out
// and returns it; the message is then not queued. If there is none, it queues the
// message as unexpected and returns nil. Bytes is what the caller keeps in memory for
// the message while it waits: its length if its data has come, 0 of one that is only
// announced. They are counted by Unexpected.
//
// Errors: ErrOwner and ErrQueued of the message, ErrPeer of the peer.
func (x *Matcher[R, M]) Arrive(
	m *Message[R, M], peer *Peer[R, M], tag uint64, bytes uint32,
) (*R, error) {
	switch {
	case peer == nil || peer.in != x:
		return nil, ErrPeer
	case m.owner == nil:
		return nil, ErrOwner
	case m.Queued():
		return nil, ErrQueued
	}
	if r := x.firstReceive(peer, tag); r != nil {
		x.takeReceive(r)
		return r.owner, nil
	}
	m.peer, m.bytes = peer, bytes
	for i, s := range [...]*Peer[R, M]{peer, &x.any} {
		p := &m.places[i]
		p.key = key{s.id, tag}
		s.unexpected.push(p)
		x.messages.insert(p)
		s.messages++
		s.bytes += uint64(bytes)
	}
	return nil, nil
}

// Take is Arrive of a message that is not to be queued: it takes out the receive that was posted
// first of all that fit and returns it, nil if there is none. The error is ErrPeer.
func (x *Matcher[R, M]) Take(peer *Peer[R, M], tag uint64) (*R, error) {
	if peer == nil || peer.in != x {
		return nil, ErrPeer
	}
	r := x.firstReceive(peer, tag)
	if r == nil {
		return nil, nil
	}
	x.takeReceive(r)
	return r.owner, nil
}

// Probe returns the message that a receive with these values would take, and leaves it
// there. It returns nil if there is none, or no such peer.
func (x *Matcher[R, M]) Probe(tag, mask uint64, source *Peer[R, M]) *M {
	if m := x.probe(tag, mask, source); m != nil {
		return m.owner
	}
	return nil
}

// Claim is Probe that takes the message out, as MPI_Mprobe does: no receive will find
// it, and who has it receives it without asking again. It is not counted anymore, and
// Forget knows nothing of it.
func (x *Matcher[R, M]) Claim(tag, mask uint64, source *Peer[R, M]) *M {
	if m := x.probe(tag, mask, source); m != nil {
		x.takeMessage(m)
		return m.owner
	}
	return nil
}

// Withdraw takes a message out, as when its sender cancels it, and reports whether it
// was still unexpected. If it was not, somebody has received or claimed it.
func (x *Matcher[R, M]) Withdraw(m *Message[R, M]) bool {
	if !m.Queued() || m.peer.in != x {
		return false
	}
	x.takeMessage(m)
	return true
}

// takeMessage takes out a message that is queued.
func (x *Matcher[R, M]) takeMessage(m *Message[R, M]) {
	for i, s := range [...]*Peer[R, M]{m.peer, &x.any} {
		s.unexpected.remove(&m.places[i])
		x.messages.remove(&m.places[i])
		s.messages--
		s.bytes -= uint64(m.bytes)
	}
	m.peer = nil
}

// probe is Probe before the owner is looked up.
func (x *Matcher[R, M]) probe(tag, mask uint64, source *Peer[R, M]) *Message[R, M] {
	s, err := x.scope(source)
	if err != nil {
		return nil
	}
	return x.firstMessage(s, tag, mask)
}

// firstMessage returns the message that arrived first of all in a scope that fit.
func (x *Matcher[R, M]) firstMessage(s *Peer[R, M], tag, mask uint64) *Message[R, M] {
	if p := s.unexpected.head; mask == Exact && p != nil {
		if p.key.tag == tag {
			return p.of // the first of all is the first of the tag
		}
		if p = x.messages.find(key{s.id, tag}); p != nil {
			return p.of
		}
		return nil
	}
	for p := s.unexpected.head; p != nil; p = p.next {
		if (p.key.tag^tag)&mask == 0 {
			return p.of
		}
	}
	return nil
}
