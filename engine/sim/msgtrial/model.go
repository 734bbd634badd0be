package msgtrial

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"xroce/roce/msg"
)

// guard is how many bytes around the memory of a receive are looked at.
const guard = 16

// none is an index behind all others.
const none = math.MaxInt

// A message is one that was posted.
type message struct {
	id    uint64 // of all posts, rising
	end   *end   // that sent it
	index int    // of those of the end
	op    msg.Send
	data  []byte // pattern of id, until it comes back
	size  int

	out     bool     // it did not come back
	err     error    // when it came back
	to      *receive // that has it
	before  int      // it must go to a receive before this one: a later message of its end did
	matched int      // of level Matched: receives that there were when it came back
}

// A receive is one that was posted.
type receive struct {
	node   *node
	life   uint64 // of the node
	index  int    // of those of the node's life
	posted uint64 // of all posts, rising
	op     msg.Receive
	from   *end
	memory []byte
	size   int

	back      bool
	cancelled bool
	message   *message // that it has
	length    int
	mustHave  int // it must have a message that was posted before this one: see takes
}

// wants reports whether a receive matches a message.
func (r *receive) wants(m *message) bool {
	return (r.from == nil || r.from == m.end.peer) && (r.op.Tag^m.op.Tag)&r.op.Mask == 0
}

// due reports whether a message has still to be received: nothing excuses that it was not.
func (m *message) due() bool {
	peer := m.end.peer
	switch {
	case m.to != nil || peer.lost():
		return false
	case !m.end.over && !peer.over:
		return true
	}
	// Of a connection that has ended: what the peer is known to have.
	return !m.out && m.err == nil && m.op.Level >= msg.Delivered || m.err == nil && !m.out &&
		errors.Is(m.end.err, msg.ErrClosed)
}

// sent takes a message that came back to its sender.
func (w *world) sent(m *message) {
	e := m.end
	if w.tamper.sent != nil {
		w.tamper.sent(w, m)
	}
	w.changes++
	w.Mix(0xe0, m.id, uint64(m.op.Sent))
	if !m.out {
		w.fail(Once, "%s: message %d came back twice", e, m.id)
		return
	}
	m.out, m.err = false, m.op.Err
	w.say("%s: message %d is back: %v, %v", e, m.id, m.op.Choice.Protocol, m.err)
	if m.err == nil {
		w.stats.Messages++
		w.stats.Bytes += uint64(m.size)
		w.stats.Protocols[m.op.Choice.Protocol]++
		w.stats.Reasons[m.op.Choice.Why]++
		w.judgeLevel(m)
	} else {
		w.stats.Failed++
		w.judgeError(m)
	}
	if !pattern(m.id).Fills(m.data) {
		w.fail(Bytes, "%s: message %d was changed where it was sent from", e, m.id)
	}
	wipe(m.data) // its memory may be used again
}

// judgeLevel holds what the sender is told to be true.
func (w *world) judgeLevel(m *message) {
	receives := len(m.end.peer.node.receives)
	switch {
	case m.op.Level == msg.Matched && !m.end.peer.lost():
		m.matched = receives
		if m.op.Choice.Protocol <= msg.Provisioned && m.to == nil {
			w.fail(Level, "%s: message %d is not matched", m.end, m.id)
		}
		if m.to != nil && m.to.index >= receives {
			w.fail(Level, "%s: message %d went to a later receive", m.end, m.id)
		}
	}
	if m.op.Sent > m.size {
		w.fail(Level, "%s: %d of %d bytes of message %d were sent", m.end, m.op.Sent, m.size, m.id)
	}
}

// judgeError holds that a message fails with its connection, and with nothing else.
func (w *world) judgeError(m *message) {
	if err := m.end.core.Err(); err == nil || !errors.Is(m.err, err) {
		w.fail(Excuse, "%s: message %d failed with %v, the connection with %v", m.end, m.id, m.err,
			err)
	}
	if errors.Is(m.err, msg.ErrClosed) {
		w.fail(Excuse, "%s: message %d failed, and the connection ended in order", m.end, m.id)
	}
	if m.op.Choice.Protocol == msg.Auto && m.to != nil {
		w.fail(Once, "%s: message %d was received and never sent", m.end, m.id)
	}
}

// received takes a receive that came back.
func (w *world) received(r *receive) {
	n := r.node
	if w.tamper.received != nil {
		w.tamper.received(w, r)
	}
	w.changes++
	w.Mix(0xe1, uint64(r.index), uint64(r.op.Length), r.op.SentTag)
	if r.back {
		w.fail(Once, "node %d: receive %d came back twice", n.index, r.index)
		return
	}
	r.back = true
	n.pending = slices.DeleteFunc(n.pending, func(x *receive) bool { return x == r })
	switch err := r.op.Err; {
	case err == nil:
		w.take(r)
		return
	case r.cancelled:
		if !errors.Is(err, msg.ErrCancelled) {
			w.fail(Excuse, "node %d: receive %d was cancelled: %v", n.index, r.index, err)
		}
		if r.mustHave != none {
			w.fail(Matching, "node %d: receive %d was free, and a later one got its message",
				n.index, r.index)
		}
	case r.op.Source != nil && r.op.Source.Err() != nil: // its message was under way
	case r.from == nil || !errors.Is(err, r.from.core.Err()):
		w.fail(Excuse, "node %d: receive %d from %v failed: %v", n.index, r.index, r.from, err)
	}
	w.say("node %d: receive %d is back: %v", n.index, r.index, r.op.Err)
}

// take judges a message that was received.
func (w *world) take(r *receive) {
	n := r.node
	r.length = r.op.Length
	e := r.op.Source.User.(*end)
	m := e.peer.find(r)
	if m == nil {
		w.fail(Bytes, "node %d: receive %d of %d bytes, tag %d from %s has nothing that was sent",
			n.index, r.index, r.length, r.op.SentTag, e)
		return
	}
	w.say("node %d: receive %d has message %d by %v, %d of %d bytes", n.index, r.index, m.id,
		r.op.Protocol, r.length, m.size)
	w.stats.Received++
	if m.to != nil {
		w.fail(Once, "node %d: receives %d and %d have message %d", n.index, m.to.index, r.index,
			m.id)
		return
	}
	m.to, r.message = r, m
	want := min(m.size, r.size)
	switch {
	case !r.wants(m):
		w.fail(Matching, "node %d: receive %d has message %d, which it did not want", n.index,
			r.index, m.id)
	case r.length != want || r.op.Whole != m.size || r.op.Truncated != (want < m.size):
		w.fail(Bytes, "node %d: receive %d of %d bytes has %d of %d, it says, of %d", n.index,
			r.index, r.size, r.length, r.op.Whole, m.size)
	case !r.intact():
		w.fail(Bytes, "node %d: receive %d of message %d: the bytes are wrong", n.index, r.index,
			m.id)
	case m.matched > 0 && r.index >= m.matched:
		w.fail(Level, "node %d: message %d was matched before receive %d was there", n.index, m.id,
			r.index)
	case r.index >= m.before:
		w.fail(Matching, "node %d: receive %d has message %d: a later one went to %d", n.index,
			r.index, m.id, m.before)
	case int(m.id) >= r.mustHave:
		w.fail(Matching, "node %d: receive %d has message %d, when later receives had earlier ones",
			n.index, r.index, m.id)
	}
	w.order(r, m)
}

// tagBits are those of a tag that receives may look at; the rest is the number of the message.
const tagBits = 16

// find finds the message that a receive has, by its tag.
func (e *end) find(r *receive) *message {
	i, ok := slices.BinarySearchFunc(e.messages, r.op.SentTag>>tagBits,
		func(m *message, id uint64) int { return cmp.Compare(m.id, id) })
	if !ok || e.messages[i].op.Tag != r.op.SentTag {
		return nil
	}
	return e.messages[i]
}

// intact reports whether the memory of a receive holds its message, and nothing else.
func (r *receive) intact() bool {
	b := r.memory[guard:]
	return pattern(r.message.id).Fills(b[:r.length]) && blanked(b[r.length:]) &&
		blanked(r.memory[:guard])
}

// order notes what follows for others of a receive that has a message: messages of the same
// end before it have one of the receives before, if this one wants them, and receives before
// it have messages that were posted by now, if they want this one.
func (w *world) order(r *receive, m *message) {
	for _, other := range m.end.messages[:m.index] {
		switch {
		case !r.wants(other):
		case other.to == nil:
			other.before = min(other.before, r.index)
		case other.to.index > r.index && other.to.life == r.life:
			w.fail(Matching, "node %d: receive %d has message %d, and %d has %d", r.node.index,
				r.index, m.id, other.to.index, other.id)
		}
	}
	for _, other := range r.node.pending {
		if other.index < r.index && other.wants(m) {
			other.mustHave = min(other.mustHave, int(w.posts)+1)
		}
	}
}
