package match

import "math"

// Exact is the mask of a receive that fits one tag only. It is found at once, however
// many there are; see the package comment.
const Exact = math.MaxUint64

// A Receive is a receive in a matcher. It is embedded in what the caller has for one,
// an R, and made ready by Init. While it is queued it must not move.
type Receive[R, M any] struct {
	owner  *R
	source *Peer[R, M] // or any of the matcher; nil when not queued
	mask   uint64
	number uint64 // in the order of posting
	place  place[Receive[R, M]]
}

// Init says in what the receive is embedded. It may be posted many times then.
func (r *Receive[R, M]) Init(owner *R) { r.owner, r.place.of = owner, r }

// Queued reports whether the receive waits for a message.
func (r *Receive[R, M]) Queued() bool { return r.source != nil }

// Post looks for the message that arrived first of all unexpected ones that fit. It
// takes that out and returns it; the receive is then not queued. If there is none, it
// queues the receive and returns nil. Only the bits of the tag that are set in the
// mask count; the source is nil for any.
//
// Errors: ErrOwner and ErrQueued of the receive, ErrPeer of the source.
func (x *Matcher[R, M]) Post(
	r *Receive[R, M], tag, mask uint64, source *Peer[R, M],
) (*M, error) {
	s, err := x.scope(source)
	switch {
	case err != nil:
		return nil, err
	case r.owner == nil:
		return nil, ErrOwner
	case r.Queued():
		return nil, ErrQueued
	}
	if m := x.firstMessage(s, tag, mask); m != nil {
		x.takeMessage(m)
		return m.owner, nil
	}
	x.posted++
	x.queued++
	r.source, r.mask, r.number = s, mask, x.posted
	r.place.key = key{s.id, tag}
	if mask == Exact {
		s.exact.push(&r.place)
		x.receives.insert(&r.place)
	} else {
		s.masked.push(&r.place)
	}
	return nil, nil
}

// Cancel takes a receive out and reports whether it was still queued. If it was not,
// it has a message or was never posted.
func (x *Matcher[R, M]) Cancel(r *Receive[R, M]) bool {
	if !r.Queued() || r.source.in != x {
		return false
	}
	x.takeReceive(r)
	return true
}

// takeReceive takes out a receive that is queued.
func (x *Matcher[R, M]) takeReceive(r *Receive[R, M]) {
	if r.mask == Exact {
		r.source.exact.remove(&r.place)
		x.receives.remove(&r.place)
	} else {
		r.source.masked.remove(&r.place)
	}
	r.source = nil
	x.queued--
}

// firstReceive returns the receive that was posted first of all that fit a message.
func (x *Matcher[R, M]) firstReceive(peer *Peer[R, M], tag uint64) *Receive[R, M] {
	var first *Receive[R, M]
	number := uint64(math.MaxUint64) // of the first one so far
	for _, s := range [...]*Peer[R, M]{peer, &x.any} {
		if p := s.exact.head; p != nil {
			if p.key.tag != tag { // else the first of all is the first of the tag
				p = x.receives.find(key{s.id, tag})
			}
			if p != nil && p.of.number < number {
				first, number = p.of, p.of.number
			}
		}
		for p := s.masked.head; p != nil && p.of.number < number; p = p.next {
			if (p.key.tag^tag)&p.of.mask == 0 {
				first, number = p.of, p.of.number
			}
		}
	}
	return first
}
