package msg

import (
	"xroce/roce/clock"
	"xroce/roce/verbs"
)

// An item is what goes out by SEND or into a slot, in the order in which it was made.
type item struct {
	control Control // when ring is nil
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
	kind  flightKind
	lane  *lane
	count uint64   // of a frame
	send  *Send    // of a WRITE
	pull  *arrival // of a READ
	n     int      // its bytes
}

type flightKind uint8

const (
	flightControl flightKind = iota
	flightFrame
	flightWrite
	flightRead
	flightProbe // a WRITE of nothing: is the peer there?
)

// NextWork fills in the next work request for the queue pair of a connection, and returns that
// connection, nil when there is none now. It must be posted, in this order; what it names
// inline is the machine's until the next call, what it names by key until HandleWork. The rest
// of wr is overwritten, but for the memory of its list.
func (e *Endpoint) NextWork(now clock.Time, wr *verbs.SendWR) *Conn {
	for c := e.ready.first; c != nil; c = e.ready.first {
		e.ready.remove(c)
		if c.nextWork(now, wr) {
			e.ready.push(c) // the others first
			return c
		}
	}
	return nil
}

// wake says that there may be work for a connection.
func (c *Conn) wake() {
	if c.state != connDead {
		c.endpoint.ready.push(c)
	}
}

// nextWork fills in the next work request: control messages and frames in their order, then
// what is read and written, then a frame that still has room.
func (c *Conn) nextWork(now clock.Time, wr *verbs.SendWR) bool {
	if c.state == connDead || !c.started || c.flights.n == c.depth ||
		c.state == connBroken && !c.farewell {
		return false
	}
	if c.state != connBroken && c.out.n == 0 && c.framesFlying < idleFrames &&
		!c.stream.lent() {
		c.closeFrame()
	}
	*wr = verbs.SendWR{
		WRID: c.posted, Flags: verbs.SendSignaled, SGList: wr.SGList[:0],
	}
	var f flight
	switch {
	case c.farewell:
		f = c.sayFarewell(wr)
	case c.out.n > 0:
		i := c.out.pop()
		f = c.post(wr, &i)
	case c.nextWrite(wr, &f), c.nextRead(wr, &f):
	case c.probe:
		c.probe = false
		c.endpoint.count.Inc(KeepaliveProbes)
		wr.Opcode, f.kind = verbs.OpWrite, flightProbe
	default:
		return false
	}
	c.flights.push(f)
	c.posted++
	return true
}

// post makes a work request of an item.
func (c *Conn) post(wr *verbs.SendWR, i *item) flight {
	if i.ring == nil {
		c.endpoint.count.Inc(SentControl)
		i.control.Sequence, i.control.Released = c.controls, c.consumed[small]
		c.controls++
		c.told[small] = c.consumed[small]
		if i.control.Type == TypeCredit {
			i.control.Tag = uint64(c.consumed[large])
			c.told[large], c.credit = c.consumed[large], false
		}
		wr.Opcode = verbs.OpSend
		wr.Flags |= verbs.SendInline
		wr.Inline = i.control.Put(c.scratch[:])
		return flight{kind: flightControl}
	}
	c.endpoint.count.Inc(SentFrames)
	i.header.ReleasedSmall, i.header.ReleasedLarge = c.consumed[small], c.consumed[large]
	i.header.Put(i.ring.bytes(i.slot))
	c.told = c.consumed
	c.framesOut--
	c.framesFlying++
	wr.Opcode = verbs.OpWriteImm
	wr.Imm = ImmediateOf(uint8(i.ring.class), i.ring.epoch, uint16(i.slot)).Uint32()
	off := uint64(i.slot * i.ring.size)
	wr.SGList = append(wr.SGList, verbs.SGE{
		Addr: i.ring.stage.Addr + off, Length: uint32(i.length), LKey: i.ring.stage.LKey,
	})
	wr.RemoteAddr, wr.RKey = i.ring.remote.Addr+off, i.ring.remote.RKey
	return flight{kind: flightFrame, lane: i.lane, count: i.count}
}

// HandleWork takes the completion of a work request of a connection.
func (e *Endpoint) HandleWork(now clock.Time, c *Conn, wc *verbs.Completion) {
	if c.state == connDead {
		return
	}
	if err := wc.Err(); err != nil {
		c.fail(now, err)
		return
	}
	if c.flights.n == 0 {
		c.fail(now, ErrOwner)
		return
	}
	f := c.flights.pop()
	if c.state == connBroken {
		c.completeBroken(now, &f)
		return
	}
	c.heard = now
	switch f.kind {
	case flightFrame:
		f.lane.flown = f.count
		c.framesFlying--
		c.landed(f.lane)
		c.retire(f.lane)
	case flightWrite:
		c.hasWritten(f.send, f.n)
	case flightRead:
		c.hasRead(f.pull, f.n)
	}
	c.pump(now)
	c.closeIfDone(now)
}

// completeBroken counts a work request of a connection that says goodbye. Behind the last one no
// packet of any is sent again.
func (c *Conn) completeBroken(now clock.Time, f *flight) {
	switch {
	case c.flights.n == 0 && !c.farewell:
		c.fail(now, c.err)
	case c.farewell:
		c.wake() // there may have been no room for it
	}
	if f.kind == flightRead {
		c.endpoint.pulling -= f.n
		c.pulling -= f.n
		c.endpoint.unthrottle()
	}
}

// retire gives back copies of slots that are not used any more.
func (c *Conn) retire(l *lane) {
	for r := l.retire(); r != nil; r = l.retire() {
		c.endpoint.giveBack(c, r.stage)
	}
}
