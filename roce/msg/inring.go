package msg

import "xroce/roce/clock"

// An inRing is slots that were made for a peer.
type inRing struct {
	conn    *Conn
	class   int
	epoch   uint32
	slots   int
	size    int // bytes of a slot
	memory  Memory
	arrived uint64 // frames
	freed   uint64 // of these, those that were taken out
	state   ringState
	request Request

	replaces   bool    // the small slots, which the peer may not use from then on
	replacedBy *inRing // what is offered when the key of this one is out of use
}

// A ringState is where a ring of ours stands.
type ringState uint8

const (
	ringAsked   ringState = iota // its memory is being made
	ringOffered                  // the peer was told
	ringInUse                    // the peer writes to it
	ringLeft                     // the peer has written its last frame there
	ringFreeing                  // its key is being taken out of use
)

// slot returns the first bytes of a slot.
func (r *inRing) slot(slot uint16, n uint32) []byte {
	return r.memory.Bytes[int(slot)*r.size:][:n]
}

// take counts a frame that arrived, and reports whether it is in the slot that is next, and
// that slot was free. Of small slots the peer says that it uses them, of large ones it does not.
func (r *inRing) take(slot uint16, n uint32) bool {
	used := r.state == ringInUse || r.state == ringOffered && r.class != 0
	if !used || int(n) > r.size ||
		r.arrived-r.freed == uint64(r.slots) || r.arrived%uint64(r.slots) != uint64(slot) {
		return false
	}
	r.state = ringInUse
	r.arrived++
	return true
}

// kind is the lane of the ring.
func (r *inRing) kind() int {
	if r.class == 0 {
		return small
	}
	return large
}

// way is the protocol of what comes whole in its slots.
func (r *inRing) way() Protocol {
	if r.class == 0 {
		return Eager
	}
	return Provisioned
}

// answer is told that the memory is there, or that it is gone.
func (r *inRing) answer(now clock.Time, q *Request, m Memory, err error) {
	switch {
	case q.Kind == Allocate:
		r.conn.ringMade(now, r, m, err)
	case r.replacedBy != nil:
		r.conn.offer(r.replacedBy)
	}
}
