package msg

import (
	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// An item is what goes out by SEND or into a slot, in the order in which it was made.
type item struct {
	control Control // when ring is nil
	sent    bool    // and it has its sequence
	lane    *lane
	ring    *outRing
	slot    int
	header  FrameHeader
	length  int    // bytes of the frame
	count   uint64 // frames of the lane up to this one
}

// A flight is a work request that is not complete. They complete in the order in which they
// were posted.
type flight struct {
	kind   flightKind
	lane   *lane
	count  uint64   // of a frame
	send   *Send    // of a WRITE
	pull   *arrival // of a READ
	rma    *RMA
	off    int  // of a WRITE or a READ, as a place in the message
	n      int  // its bytes
	resume bool // of a control message: it is outside of the order
}

type flightKind uint8

const (
	flightControl flightKind = iota
	flightFrame
	flightWrite
	flightRead
	flightRMA
	flightProbe // a WRITE of nothing: is the peer there?
)

// NextWork fills in the next work request for the queue pair of a rail, and returns that rail,
// nil when there is none now. It must be posted, in this order; what it names inline is the
// machine's until the next call, what it names by key until HandleWork. The rest of wr is
// overwritten, but for the memory of its list.
func (e *Endpoint) NextWork(now clock.Time, wr *verbs.SendWR) *Rail {
	for c := e.ready.First(); c != nil; c = e.ready.First() {
		e.ready.Remove(&c.links)
		if r := c.nextWork(now, wr); r != nil {
			if !c.idle() {
				e.ready.Push(&c.links, c) // the others first
			}
			return r
		}
	}
	return nil
}

// wake says that there may be work for a connection.
func (c *Conn) wake() {
	if c.state != connDead {
		c.endpoint.ready.Push(&c.links, c)
	}
}

// nextWork fills in the next work request: control messages and frames in their order, a frame
// that still has room behind them, then what is read and written.
func (c *Conn) nextWork(now clock.Time, wr *verbs.SendWR) *Rail {
	if c.state == connDead || c.state == connBroken && !c.farewell || c.idle() {
		return nil
	}
	*wr = verbs.SendWR{
		WRID: c.posted, Flags: verbs.SendSignaled, SGList: wr.SGList[:0],
	}
	var f flight
	r := c.nextInOrder(wr, &f)
	if r == nil && c.state != connBroken {
		r = c.nextPayload(wr, &f)
	}
	if r == nil {
		return nil
	}
	r.flights.push(f)
	c.posted++
	return r
}

// idle reports whether there is nothing to post, which is so most often: behind each work request
// another one is asked for, and behind whatever arrives.
func (c *Conn) idle() bool {
	if c.out.n > 0 || c.open.lane != nil || c.farewell || c.resume.on != nil ||
		c.puts.Len() > 0 || c.pulls.Len() > 0 || c.rma.waiting.Len() > 0 {
		return false
	}
	for _, r := range c.rails {
		if r.probe {
			return false
		}
	}
	return true
}

// nextInOrder is nextWork of what goes in order, by one rail.
func (c *Conn) nextInOrder(wr *verbs.SendWR, f *flight) *Rail {
	if r := c.resume.on; r != nil {
		if !r.room() {
			return nil
		}
		*f = c.postResume(wr)
		r.usage.Control++
		return r
	}
	r := c.control
	if r == nil || !r.room() {
		return nil
	}
	if c.farewell {
		*f = c.sayFarewell(wr)
		return r
	}
	if c.out.n == 0 && c.framesFlying < idleFrames && !c.stream.lent() {
		c.closeFrame()
	}
	if c.out.n == 0 {
		return nil
	}
	*f = c.post(wr, c.out.head())
	c.out.drop()
	return r
}

// nextPayload is nextWork of what takes any rail.
func (c *Conn) nextPayload(wr *verbs.SendWR, f *flight) *Rail {
	if r := c.emptiest(); r != nil && c.nextPart(r, wr, f) {
		r.load += f.n
		return r
	}
	for r := range c.live() {
		if r.probe && r.room() {
			r.probe = false
			c.endpoint.count.Inc(KeepaliveProbes)
			wr.Opcode, f.kind = verbs.OpWrite, flightProbe
			return r
		}
	}
	return nil
}

// nextPart fills in a part of a message or of an RMA, in turns.
func (c *Conn) nextPart(r *Rail, wr *verbs.SendWR, f *flight) bool {
	c.rma.turn = !c.rma.turn
	return c.rma.turn && c.nextRMA(r, wr, f) || c.nextWrite(r, wr, f) || c.nextRead(r, wr, f) ||
		c.nextRMA(r, wr, f)
}

// post makes a work request of an item, for the rail of those.
func (c *Conn) post(wr *verbs.SendWR, i *item) flight {
	r := c.control
	if i.ring == nil {
		c.endpoint.count.Inc(SentControl)
		r.usage.Control++
		if !i.sent {
			i.control.Sequence = c.controls
			c.controls++
		}
		i.sent = true
		i.control.Released = c.consumed[small]
		c.told[small] = c.consumed[small]
		if i.control.Type == TypeCredit {
			i.control.Tag = uint64(c.consumed[large])
			c.told[large], c.credit = c.consumed[large], false
		}
		wr.Opcode = verbs.OpSend
		wr.Flags |= verbs.SendInline
		wr.Inline = c.byRail(r.ours, &i.control).Put(c.scratch[:])
		c.keep(i)
		return flight{kind: flightControl}
	}
	c.endpoint.count.Inc(SentFrames)
	r.usage.Frames++
	r.usage.FrameBytes += uint64(i.length)
	i.header.ReleasedSmall, i.header.ReleasedLarge = c.consumed[small], c.consumed[large]
	i.header.Put(i.ring.bytes(i.slot))
	c.told = c.consumed
	c.framesOut--
	c.framesFlying++
	wr.Opcode = verbs.OpWriteImm
	wr.Imm = ImmediateOf(uint8(i.ring.class), i.ring.epoch, uint16(i.slot)).Uint32()
	off := uint64(i.slot * i.ring.size)
	here, there := i.ring.stage.By(r.ours), i.ring.remote.By(r.theirs)
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: here.Addr + off, Length: uint32(i.length), LKey: here.LKey,
	})
	wr.RemoteAddr, wr.RKey = there.Addr+off, there.RKey
	c.keep(i)
	return flight{kind: flightFrame, lane: i.lane, count: i.count}
}

// keep holds what was posted, in case that it has to go again by another rail.
func (c *Conn) keep(i *item) {
	if c.several {
		c.unseen.push(*i)
	}
}

// HandleWork takes the completion of a work request of a rail.
func (e *Endpoint) HandleWork(now clock.Time, r *Rail, wc *verbs.Completion) {
	c := r.conn
	if c.state == connDead {
		return
	}
	err := wc.Err()
	switch {
	case err != nil && (!c.several || !survives(wc.Status)):
		c.fail(now, err)
	case r.flights.n == 0:
		c.fail(now, ErrOwner)
	case err != nil:
		c.lose(now, r, err)
	}
	if c.state == connDead {
		return
	}
	f := r.flights.pop()
	switch {
	case c.state == connBroken:
		c.completeBroken(now, &f)
		return
	case err != nil:
		c.redo(r, &f)
	default:
		c.heard, r.heard = now, now
		c.completeFlight(r, &f)
	}
	c.drained(now, r)
	if c.muted && !c.mute() {
		c.process(now)
	}
	c.pump(now)
	c.closeIfDone(now)
}

// completeFlight takes the success of a work request.
func (c *Conn) completeFlight(r *Rail, f *flight) {
	if c.several && !f.resume && (f.kind == flightControl || f.kind == flightFrame) {
		c.unseen.drop()
	}
	r.load -= f.n
	switch f.kind {
	case flightFrame:
		full := f.lane.free() == 0
		f.lane.flown = f.count
		if full {
			c.stir() // the peer may have left the slot before
		}
		c.framesFlying--
		c.landed(f.lane)
		c.retire(f.lane)
	case flightWrite:
		r.usage.Written += uint64(f.n)
		c.hasWritten(f.send, f.n)
	case flightRead:
		r.usage.Read += uint64(f.n)
		c.hasRead(f.pull, f.n)
	case flightRMA:
		f.rma.hasFlown()
	}
}

// completeBroken counts a work request of a connection that says goodbye. Behind the last one no
// packet of any is sent again.
func (c *Conn) completeBroken(now clock.Time, f *flight) {
	switch {
	case c.flying() == 0 && !c.farewell:
		c.fail(now, c.err)
	case c.farewell:
		c.wake() // there may have been no room for it
	}
	if f.kind == flightRMA && f.rma.state == rmaActive { // which ends with the connection
		c.rma.waiting.Push(&f.rma.links, f.rma)
	}
	if f.kind == flightRead {
		c.endpoint.pulling -= f.n
		c.pulling -= f.n
		c.endpoint.unthrottle()
	}
}

// retire gives back copies of slots that are not used any more. Those that are announced may have
// waited for it.
func (c *Conn) retire(l *lane) {
	for r := l.retire(); r != nil; r = l.retire() {
		c.endpoint.giveBack(c, r.stage)
	}
	if c.offered == nil || c.over() {
		return
	}
	if err := c.offered.ask(); err != nil {
		c.broken(err)
	}
}
