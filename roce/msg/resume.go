package msg

import (
	"errors"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// When the rail of frames and control messages is lost, both ends change to another one. Each
// says RESUME there: how many control messages and frames of the peer it has seen. What the peer
// has not seen is sent again, in its order, and nothing else is.
//
//  1. Before an end says RESUME, the lost queue pair is in ERR and everything that came from it
//     was looked at: it is fenced. So what RESUME says stays true, and no late packet of the old
//     rail writes to a slot that the peer, which knows that from the RESUME, uses again.
//  2. Nothing but the RESUME is sent in order before that of the peer has come by the same rail.
//  3. Each change has a number. An end that loses the rail, or the one where it said RESUME, adds
//     one; a higher one of the peer is taken over, and the rail up to there is fenced. When both
//     ends say the same number by different rails, that of the leader counts: who has dialled.
//
// A frame or control message whose work request was completed will be seen: the peer's queue
// pair has taken it, and (1) has the peer look at it before it says RESUME.

// A resume is where a change of rails stands.
type resume struct {
	number    uint16  // of the last change
	underWay  bool    // there is no rail for what goes in order
	fencing   *Rail   // the lost one, from which something may still come
	candidate *Rail   // where we said RESUME, and wait for that of the peer
	said      uint16  // with this number
	on        *Rail   // where a RESUME is to be sent
	heard     *Rail   // where the peer said RESUME, which was not answered
	message   Control // that one
}

var (
	errReplaced = errors.New("msg: the peer has dialled the rail again")
	errResumed  = errors.New("msg: the peer has given up the rail")
)

// unseat begins a change when the rail that is lost is that of the order, or is to be. It
// reports whether it was.
func (c *Conn) unseat(r *Rail) bool {
	s := &c.resume
	if s.on == r {
		s.on = nil
	}
	switch r {
	case c.control:
		c.control, s.fencing, s.underWay = nil, r, true
	case s.candidate:
		s.fencing = r
	case s.heard:
		s.heard = nil
	default:
		return false
	}
	s.number++
	return true
}

// fenced goes on when nothing comes from a lost rail any more.
func (c *Conn) fenced(now clock.Time, r *Rail) {
	s := &c.resume
	if s.fencing != r {
		return
	}
	s.fencing = nil
	if s.candidate == r {
		s.candidate = nil
	}
	c.tryResume(now)
}

// tryResume answers the RESUME of the peer, or says one, when that can be done.
func (c *Conn) tryResume(now clock.Time) {
	s := &c.resume
	if !s.underWay || s.fencing != nil || c.over() {
		return
	}
	if c.allSaid() {
		c.fail(now, ErrClosed)
		return
	}
	if r := s.heard; r != nil {
		if r.started {
			c.sayResume(r)
			if err := c.resumed(now, r, &s.message); err != nil {
				c.broken(err)
			}
		}
		return
	}
	if s.candidate != nil {
		return
	}
	for r := range c.live() {
		if r.started {
			c.sayResume(r)
			s.candidate = r
			return
		}
	}
}

// sayResume has a RESUME sent, before everything else.
func (c *Conn) sayResume(r *Rail) {
	c.resume.on, c.resume.said = r, c.resume.number
	c.wake()
}

// postResume makes its work request.
func (c *Conn) postResume(wr *verbs.SendWR) flight {
	c.resume.on = nil
	c.told = c.consumed
	m := Control{
		Type: TypeResume, Number: c.resume.said, ID: c.peerControls, Len: uint64(c.peerFrames),
		Tag: uint64(c.consumed[large]), Sequence: c.controls, Released: c.consumed[small],
	}
	wr.Opcode = verbs.OpSend
	wr.Flags |= verbs.SendInline
	wr.Inline = m.Put(c.scratch[:])
	return flight{kind: flightControl, resume: true}
}

// hearResume takes a RESUME.
func (c *Conn) hearResume(now clock.Time, r *Rail, m *Control) error {
	s := &c.resume
	if !c.several || r == c.control {
		return ErrState
	}
	if r == s.candidate && m.Number == s.said {
		return c.resumed(now, r, m)
	}
	if r.lost {
		return nil // the peer will know
	}
	switch ahead := int16(m.Number - s.number); {
	case ahead < 0, ahead == 0 && !s.underWay:
		return nil // from before
	case ahead == 0 && s.candidate != nil && s.said == s.number:
		if c.leads {
			return nil // the peer follows
		}
		s.candidate = nil
	case ahead > 0:
		if seat := c.seat(); seat == r {
			s.candidate = nil
		} else if seat != nil {
			if c.lose(now, seat, errResumed); c.over() {
				return nil
			}
		}
		s.underWay = true
	}
	s.number, s.heard, s.message = m.Number, r, *m
	c.tryResume(now)
	return nil
}

// seat is the rail where the peer may have sent something in order: that of the order, or where
// we said RESUME.
func (c *Conn) seat() *Rail {
	if c.control != nil {
		return c.control
	}
	return c.resume.candidate
}

// resumed goes on by a rail, where both have said RESUME. If it is lost by now, only what it
// brings until it is fenced counts.
func (c *Conn) resumed(now clock.Time, r *Rail, m *Control) error {
	s := &c.resume
	if s.candidate = nil; s.heard == r {
		s.heard = nil
	}
	r.ordered = true
	if err := c.seen(m); err != nil {
		return err
	}
	if err := c.freed(m.Released, uint32(m.Tag)); err != nil {
		return err
	}
	if r.lost {
		return nil
	}
	s.underWay, c.control = false, r
	c.endpoint.count.Inc(Resumed)
	c.endpoint.count.Add(SentAgain, c.unseen.n)
	for i := range c.unseen.all() {
		if i.ring != nil {
			c.framesOut++
		}
	}
	for range c.out.n { // what was never sent goes behind
		c.unseen.push(c.out.pop())
	}
	c.out, c.unseen = c.unseen, c.out
	c.pump(now)
	return nil
}

// seen completes what the peer says that it has seen, and holds that to what was sent.
func (c *Conn) seen(m *Control) error {
	for c.unseen.n > 0 && c.unseen.head().seen(m) {
		if i := c.unseen.pop(); i.ring != nil {
			i.lane.flown = i.count
			c.landed(i.lane)
			c.retire(i.lane)
		}
	}
	controls, frames := c.controls, c.frames
	var control, frame bool // the first of these that it has not seen is known
	for _, list := range []*fifo[item]{&c.unseen, &c.out} {
		for i := range list.all() {
			switch {
			case i.ring != nil && !frame:
				frames, frame = i.header.Sequence, true
			case i.ring == nil && i.sent && !control:
				controls, control = i.control.Sequence, true
			}
		}
	}
	if m.ID != controls || uint32(m.Len) != frames {
		return ErrSequence
	}
	return nil
}

// seen reports whether a RESUME says that the peer has it.
func (i *item) seen(m *Control) bool {
	if i.ring != nil {
		return int32(uint32(m.Len)-i.header.Sequence) > 0
	}
	return int32(m.ID-i.control.Sequence) > 0
}
