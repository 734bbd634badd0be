package msg

import (
	"errors"

	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// An arrived is a frame or an RTS that came and was not looked at yet. They are looked at in
// their order; all other control messages at once, so that a message that nobody receives
// holds up nothing but those behind it.
type arrived struct {
	ring    *inRing // of a frame
	records Records
	frame   uint32 // its sequence
	record  int    // of the next record
	tell    bool   // its sender waits until the slot is free
	rts     Control
	fin     bool // the peer sends no more
}

// HandleArrival takes the completion of a receive of a rail. Of a SEND, control is the bytes that
// came. The receive is to be posted again before anything else.
func (e *Endpoint) HandleArrival(
	now clock.Time, r *Rail, wc *verbs.Completion, control []byte,
) {
	c := r.conn
	if c.over() {
		return
	}
	if err := wc.Err(); err != nil {
		c.lastArrival(now, r, wc.Status, err)
		return
	}
	c.heard, r.heard = now, now
	var err error
	switch wc.Opcode {
	case verbs.WCRecvRDMAWithImm:
		if err = c.orderedBy(r); err == nil {
			err = c.takeFrame(wc)
		}
	case verbs.WCRecv:
		err = c.takeControl(now, r, control)
	default:
		err = ErrType
	}
	if err == errBehind {
		return
	}
	if err != nil {
		c.broken(err)
		return
	}
	c.process(now)
	c.pump(now)
	c.closeIfDone(now)
	c.stir()
}

// lastArrival is told by a receive that failed that no other one of the rail succeeds.
func (c *Conn) lastArrival(now clock.Time, r *Rail, status verbs.Status, err error) {
	if !c.several || !survives(status) {
		c.fail(now, err)
		return
	}
	c.lose(now, r, err)
	r.flushed = true
	c.drained(now, r)
	c.pump(now)
	c.closeIfDone(now)
}

// errBehind is what comes from a rail that was given up for another one before it carried
// anything in order: the peer sends it again.
var errBehind = errors.New("msg: from a rail that is not in use")

// orderedBy reports as an error that a rail is not the one of frames and control messages, and
// was not the last one before.
func (c *Conn) orderedBy(r *Rail) error {
	switch {
	case r == c.control, r.ordered && r == c.resume.fencing:
		return nil
	case r.lost:
		return errBehind
	}
	return ErrState
}

// takeFrame judges a frame that was written to a slot, and queues it.
func (c *Conn) takeFrame(wc *verbs.Completion) error {
	if c.heardLast {
		return ErrState
	}
	imm := ParseImmediate(wc.Imm)
	r := c.ringOf(imm)
	if r == nil {
		return ErrNoRing
	}
	if !r.take(imm.Slot, wc.ByteLen) {
		return ErrSlot
	}
	f, err := ParseFrame(r.slot(imm.Slot, wc.ByteLen))
	switch {
	case err != nil:
		return err
	case f.Epoch != r.epoch:
		return ErrEpoch
	case f.Sequence != c.peerFrames:
		return ErrSequence
	}
	c.peerFrames++
	c.endpoint.count.Inc(RecvFrames)
	if err := c.freed(f.ReleasedSmall, f.ReleasedLarge); err != nil {
		return err
	}
	a := c.arrivals.add()
	a.ring, a.records, a.frame = r, f.Iterate(), f.Sequence
	return nil
}

// ringOf finds the ring that an immediate names.
func (c *Conn) ringOf(imm Immediate) *inRing {
	for _, r := range c.in {
		if r.class == int(imm.Class) && imm.OfEpoch(r.epoch) && r.state != ringFreeing {
			return r
		}
	}
	return nil
}

// freed takes how many frames the peer has taken out.
func (c *Conn) freed(smallFrames, largeFrames uint32) error {
	if !c.lanes[small].release(smallFrames) || !c.lanes[large].release(largeFrames) {
		return ErrCredit
	}
	c.landed(&c.lanes[small])
	c.landed(&c.lanes[large])
	c.watched()
	return nil
}

// process looks at what arrived, in its order, until something has to wait for a receive.
func (c *Conn) process(now clock.Time) {
	if c.stream.on {
		c.advance()
		return
	}
	for c.arrivals.n > 0 && !c.over() && !c.mute() {
		a := c.arrivals.head()
		if a.ring == nil {
			took := c.takeInTurn(now, a)
			if c.over() {
				return
			}
			if !took {
				break
			}
			c.goOn()
			c.arrivals.drop()
			continue
		}
		if !c.processFrame(now, a) {
			break
		}
		if c.over() {
			return // and what had arrived is gone
		}
		if err := a.records.Err(); err != nil {
			c.broken(err)
			return
		}
		c.tell = c.tell || a.tell
		ring := a.ring
		c.arrivals.drop()
		c.release(ring)
	}
	if c.arrivals.n == 0 {
		c.goOn()
	}
	c.muted = c.arrivals.n > 0 && !c.over() && c.mute()
	c.tellCredit()
}

// release counts a slot that is free again.
func (c *Conn) release(ring *inRing) {
	ring.freed++
	c.consumed[ring.kind()]++
	c.vacate(ring)
}

// takeInTurn does what a control message says that has its place among the messages. It returns
// false when that has to wait.
func (c *Conn) takeInTurn(now clock.Time, a *arrived) bool {
	if a.fin {
		c.finished = true
		return true
	}
	took := c.takeRTS(now, &a.rts)
	if took {
		c.announcements--
	}
	return took
}

// processFrame takes the records out of a frame. It reports whether all are out, or the next
// one is wrong.
func (c *Conn) processFrame(now clock.Time, a *arrived) bool {
	for {
		if c.mute() {
			return false
		}
		var rec Record
		before := a.records
		if !a.records.Next(&rec) {
			return true
		}
		ok := true
		a.tell = a.tell || rec.Flags&RecordTell != 0
		switch rec.Type {
		case RecordFragment:
			ok = c.takeFragment(&rec)
		case RecordActive:
			ok = c.takeActive(now, &rec, a)
		default:
			ok = c.takeEager(&rec, a)
		}
		if c.over() {
			return true
		}
		if !ok {
			a.records = before
			return false
		}
		c.goOn()
		a.record++
	}
}

// tellCredit tells the peer which slots are free again, when it may be short of them and
// nothing else goes there that tells.
func (c *Conn) tellCredit() {
	if c.over() || c.credit {
		return
	}
	due := (c.tell || c.heardLast) && c.consumed != c.told ||
		c.consumed[large]-c.told[large] >= c.mayOweLarge() ||
		c.consumed[small]-c.told[small] >= uint32(c.fewestSlots()/2)
	c.tell = false
	if due {
		c.credit = true
		c.say(Control{Type: TypeCredit})
	}
}

// mayOweLarge is of how many large slots the peer has to be told that they are free: of half of
// those that it has, and of the first at least.
func (c *Conn) mayOweLarge() uint32 {
	n := 2 * MaxSlots
	for _, r := range c.in {
		if r.class != 0 {
			n = min(n, r.slots)
		}
	}
	return uint32(max(n/2, 1))
}

// takeEager delivers a message that came whole, or keeps it. It returns false when there is
// no room to keep it in.
func (c *Conn) takeEager(rec *Record, in *arrived) bool {
	e, way, frame, record := c.endpoint, in.ring.way(), in.frame, in.record
	r, err := e.match.Take(&c.source, rec.Tag)
	switch {
	case err != nil:
		c.broken(err)
		return false
	case r != nil:
		if rec.Flags&RecordSync != 0 {
			c.sayMatched(frame, record)
		}
		e.deliver(c, r, way, rec.Tag, rec.Payload)
		return true
	}
	a := e.newArrival(c)
	a.kind, a.way, a.tag, a.length = arrivalEager, way, rec.Tag, uint64(rec.Len)
	a.sync, a.frame, a.record = rec.Flags&RecordSync != 0, frame, record
	if _, err := e.match.Arrive(&a.node, &c.source, rec.Tag, rec.Len); err != nil {
		c.broken(err)
		return false
	}
	if !c.mayKeep(rec.Len) {
		e.match.Withdraw(&a.node)
		e.retireArrival(a)
		c.await(rec.Tag)
		return false
	}
	a.data = append(a.data[:0], rec.Payload...)
	e.count.Inc(Unexpected)
	e.unmatched++
	return true
}

// mayKeep reports whether a message, which is counted already, stays within what is kept for
// a peer. What it costs beside its data is counted, too.
func (c *Conn) mayKeep(n uint32) bool {
	messages, bytes := c.source.Unexpected()
	most := uint64(c.endpoint.config.Unexpected)
	return messages == 1 || bytes+uint64(messages)*arrivalCost <= most
}
