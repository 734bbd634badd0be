package match

// A Matcher has the posted receives and the unexpected messages of an endpoint. R is
// what the caller has for a receive, in which a Receive is embedded, M the same for a
// message and Message. It is made by New.
type Matcher[R, M any] struct {
	lastID uint64 // of a peer
	posted uint64 // number of the receive that was queued last
	queued int    // receives

	// any is what receives from any source name. Each message is one of any, beside
	// being one of its peer.
	any Peer[R, M]

	receives table[Receive[R, M]] // with mask Exact
	messages table[Message[R, M]] // all of them, in both scopes
}

// New makes a matcher without peers. The seed is 128 random bits; who knows them can
// make its tables slow.
func New[R, M any](seed [2]uint64) *Matcher[R, M] {
	x := &Matcher[R, M]{}
	x.any.in = x
	x.receives.init(seed)
	x.messages.init(seed)
	return x
}

// Add makes a peer known. Of one that is known, here or to another matcher, it says
// ErrKnown.
func (x *Matcher[R, M]) Add(p *Peer[R, M]) error {
	if p.in != nil {
		return ErrKnown
	}
	x.lastID++
	*p = Peer[R, M]{in: x, id: x.lastID}
	return nil
}

// Forget ends a peer that is dead or gone: its unexpected messages are taken out and
// given to message, in order of arrival, then the receives that name it as source to
// receive, those with mask Exact first, else in order of posting. Receives from any
// source stay, and so does what somebody claimed: that belongs to who has it. From
// then on the peer is not known; it may be added again. A peer that is not known says
// ErrPeer.
//
// With nil, for an endpoint that closes, it takes out all unexpected messages of all
// peers, and the receives from any source. Peers and their receives stay.
//
// The functions must not call the matcher.
func (x *Matcher[R, M]) Forget(p *Peer[R, M], message func(*M), receive func(*R)) error {
	s, err := x.scope(p)
	if err != nil {
		return err
	}
	for s.unexpected.head != nil {
		m := s.unexpected.head.of
		x.takeMessage(m)
		message(m.owner)
	}
	for _, l := range []*list[Receive[R, M]]{&s.exact, &s.masked} {
		for l.head != nil {
			r := l.head.of
			x.takeReceive(r)
			receive(r.owner)
		}
	}
	if p != nil {
		p.in = nil
	}
	return nil
}

// Unexpected returns how many messages wait for a receive, of all peers, and the bytes
// that are kept for them.
func (x *Matcher[R, M]) Unexpected() (messages int, bytes uint64) { return x.any.Unexpected() }

// Posted returns how many receives are queued.
func (x *Matcher[R, M]) Posted() int { return x.queued }

// scope is where receives from a source belong; nil is any.
func (x *Matcher[R, M]) scope(source *Peer[R, M]) (*Peer[R, M], error) {
	switch {
	case source == nil:
		return &x.any, nil
	case source.in != x:
		return nil, ErrPeer
	}
	return source, nil
}
