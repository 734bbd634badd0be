package msg

import (
	"errors"

	"xroce/roce/clock"
)

// idleFrames is how many frames may be on their way for a further one to leave before it is
// full. Behind so many, messages are gathered until one of them has arrived: a connection with
// little to say does not wait, one with much fills its frames. It needs no timer.
const idleFrames = 2

// openFrame is the frame that still takes records.
type openFrame struct {
	writer FrameWriter
	lane   *lane
	ring   *outRing
	slot   int
}

// hasRoom reports whether a message may go to a lane now.
func (c *Conn) hasRoom(l *lane, n int) bool {
	return c.open.lane == l && c.open.writer.Room() >= n || l.free() > 0
}

// record adds a record to the frames of a lane, and returns where its payload goes. It
// returns false when there is no slot for it now.
func (c *Conn) record(now clock.Time, l *lane, h *RecordHeader) (payload []byte, ok bool) {
	if c.open.lane != nil && (c.open.lane != l || c.open.writer.Room() < int(h.Len)) {
		c.closeFrame()
	}
	if c.open.lane == nil {
		if l.free() == 0 || c.asking.replacing && l == &c.lanes[small] {
			return nil, false
		}
		c.openFrame(now, l)
	}
	return c.open.writer.Append(h)
}

// slots is the lane of short messages and of fragments: that of small slots, unless large ones
// have replaced them.
func (c *Conn) slots() *lane {
	if c.lanes[small].ring == nil && c.lanes[large].ring != nil {
		return &c.lanes[large]
	}
	return &c.lanes[small]
}

// laneOfShort is where a short message goes: into the open frame if it has room there, else to a
// small slot. One of many, which are gathered, goes to a large slot if there are some and one is
// free: more of them fit a frame. There are many while frames are on their way, and as long as
// those that leave are longer than a small slot.
func (c *Conn) laneOfShort(n int) *lane {
	l, other := c.slots(), &c.lanes[large]
	many := c.gathered || c.framesFlying+c.framesOut >= idleFrames || l.free() == 0
	switch {
	case c.open.lane == other && c.open.writer.Room() >= n:
		return other
	case c.open.lane == l && c.open.writer.Room() >= n:
		return l
	case many && other.free() > 0:
		return other
	case c.gathered && other.ring.payload() >= bulkSlot:
		return other // waits: in small slots each of few would cost a frame
	}
	return l
}

// LeavesAtOnce reports whether a message, by such a protocol and in such pieces, is in a frame of
// small slots when Send returns, so that it is of no matter what time Send was told.
func (c *Conn) LeavesAtOnce(by Protocol, pieces [][]byte) bool {
	l := &c.lanes[small]
	if by != Auto || c.endpoint.config.Protocol != Auto || c.state != connOpen || !c.announced ||
		c.pending.Len() > 0 || c.fragments.Len() > 0 || c.asking.replacing || c.gathered ||
		c.open.lane != nil || c.framesFlying+c.framesOut >= idleFrames || l.free() == 0 {
		return false
	}
	room := l.ring.payload()
	for _, p := range pieces {
		room -= len(p)
	}
	return room >= 0
}

// bulkSlot is about how long the slots are that messages have made which wait because all slots
// are in use: several share a frame, and the frames of a few slots keep the wire busy until the
// peer has told of free ones again.
const bulkSlot = 64 << 10

// sharing is how long a message is at most that waits for a slot to share. A longer one would have
// it for itself, and costs less without: it is not copied, and has to wait anyway.
const sharing = bulkSlot / 2

// enlargeForMany has large slots made, or larger ones, for messages that wait because all slots are
// in use, as the first message that is too long for those would. They do not wait for it.
func (c *Conn) enlargeForMany(now clock.Time) {
	config, l := &c.endpoint.config, &c.lanes[large]
	sizes := c.sizes()
	switch {
	case c.lanes[small].ring == nil, len(sizes) == 0, c.mode() != Keep, c.asking.refused != 0,
		c.state != connOpen, config.Policy != EnlargeFirst && config.Policy != EnlargeAuto:
		return
	case l.ring != nil && l.freed < l.ring.began:
		return // the peer still has frames in those before, so it would refuse a third kind
	}
	size := sizes[len(sizes)-1]
	for _, n := range sizes {
		if n >= bulkSlot {
			size = n
			break
		}
	}
	if l.ring.payload() < size {
		c.provision(now, size)
	}
}

// openFrame begins a frame in a lane, which has a free slot.
func (c *Conn) openFrame(now clock.Time, l *lane) {
	l.written++
	slot := l.ring.slot(l.written)
	c.open.lane, c.open.ring, c.open.slot = l, l.ring, slot
	c.open.writer.Reset(l.ring.bytes(slot))
	l.used = now
}

// closeFrame puts the open frame, if there is one, behind what goes out.
func (c *Conn) closeFrame() {
	o := &c.open
	if o.lane == nil {
		return
	}
	if o.writer.Records() == 0 { // of a stream that had nothing to say after all
		c.abandonFrame()
		return
	}
	i := c.out.add()
	i.lane, i.ring, i.slot, i.count = o.lane, o.ring, o.slot, o.lane.written
	i.header = FrameHeader{Epoch: o.ring.epoch, Sequence: c.frames}
	i.length = len(o.writer.Finish(&i.header))
	c.gathered = o.writer.Records() > 1 && i.length > c.lanes[small].ring.length()
	c.frames++
	c.framesOut++
	o.lane, o.ring = nil, nil
}

// closeFull closes the open frame when nothing more has room in it.
func (c *Conn) closeFull() {
	if c.open.writer.Room() <= 0 {
		c.closeFrame()
	}
}

// abandonFrame takes back the open frame, which has no records.
func (c *Conn) abandonFrame() {
	c.open.lane.written--
	c.open.lane, c.open.ring = nil, nil
}

// say puts a control message behind what goes out. A message that must not overtake those
// in the open frame closes it first.
func (c *Conn) say(m Control) {
	if c.over() {
		return
	}
	if c.toSay() >= c.mostToSay() {
		c.broken(ErrFlood)
		return
	}
	c.out.push(item{control: m})
	c.wake()
}

// sayInOrder is say behind all messages that were sent before.
func (c *Conn) sayInOrder(m Control) {
	c.closeFrame()
	c.say(m)
}

// launch sends the message at the head of those that wait, or begins to. It reports whether
// the next one may go.
func (c *Conn) launch(now clock.Time, s *Send) bool {
	if s.mark {
		c.passMark(s)
		return true
	}
	switch {
	case !c.announced:
		return false // how long a slot is, the peer has not said yet
	case s.state == sendLoading:
		return false
	case s.Fence && s.state == sendPending && !c.allBefore(s):
		return false
	}
	if s.state == sendPending {
		enlarges := s.Choice.Why == Enlarge
		if s.Choice, s.left = c.choose(now, s), now; enlarges && s.Choice.Why == HasLarge {
			s.Choice.Why = Enlarge // it is there because of this message
		}
	}
	switch s.Choice.Protocol {
	case Eager:
		if !c.loadWhole(s) {
			return false
		}
		if c.launchInSlot(now, c.laneOfShort(s.length), s) {
			return true
		}
		c.enlargeForMany(now)
		return false
	case Provisioned:
		if c.mode() == LocalOnly {
			return c.launchLocal(now, s)
		}
		if l := &c.lanes[large]; l.ring.payload() >= s.length {
			if !c.loadWhole(s) {
				return false
			}
			if c.launchInSlot(now, l, s) {
				return true
			}
			c.enlargeForMany(now)
			return false
		}
		c.provision(now, s.Choice.Slot)
		return false
	}
	return c.announce(s)
}

// choose says how a message travels, as things are now.
func (c *Conn) choose(now clock.Time, s *Send) Choice {
	e := &c.endpoint.config
	forced := s.Protocol
	if forced == Auto {
		forced = e.Protocol
	}
	limit := c.lanes[small].ring.payload()
	if forced == Auto && s.length <= limit && !s.crowded {
		return Choice{Protocol: Eager, Why: Fits, Rule: Fits} // as Choose says, of most messages
	}
	if now >= c.asking.until {
		c.asking.refused = 0 // it may have memory again
	}
	caps := c.agreed.Capabilities
	is := Situation{
		EagerLimit: limit, Forced: forced, Policy: e.Policy, After: e.After,
		Seen: c.tooLong, Large: c.sizes(), Ready: max(c.lanes[large].ring.payload(), c.localSize()),
		Refused: c.asking.refused, Keys: caps&rendezvousByKey != 0,
		Reads: caps&CapabilityGet != 0, Crowded: s.crowded, Measured: c.measured(s),
		Full: c.mode() != LocalOnly && !c.hasRoom(&c.lanes[large], s.length),
	}
	return is.Choose(s.length, s.longest)
}

// launchInSlot copies a message into a frame.
func (c *Conn) launchInSlot(now clock.Time, l *lane, s *Send) bool {
	h := RecordHeader{Type: RecordEager, Len: uint32(s.length), Tag: s.Tag}
	if s.Active {
		h.Type, h.Number = RecordActive, s.Handler
	}
	switch s.Level {
	case Delivered:
		h.Flags = RecordTell
	case Matched:
		h.Flags = RecordSync
	}
	payload, ok := c.record(now, l, &h)
	if !ok {
		return false
	}
	s.gather(payload, 0)
	c.pending.Remove(&s.links)
	c.countSent(s)
	c.endpoint.count.Add(BytesCopiedOut, s.length)
	s.state, s.at, s.Sent = sendInSlot, l.written, s.length
	switch s.Level {
	case Buffered:
		c.finish(s, nil)
	case Transmitted:
		l.flying.Push(&s.links, s)
	case Delivered:
		l.landing.Push(&s.links, s)
	case Matched:
		c.syncs[syncKey(c.frames, c.open.writer.Records()-1)] = s
	}
	if s.Choice.Protocol == Provisioned && c.endpoint.config.Policy == EnlargeAuto {
		c.watch(now, s)
	}
	c.closeFull()
	return true
}

// countSent counts a message that leaves.
func (c *Conn) countSent(s *Send) {
	e := c.endpoint
	e.count.Inc(sentBy[s.Choice.Protocol])
	if s.Active {
		e.count.Inc(SentActive)
	}
	if s.Choice.Why == Crowded {
		e.count.Inc(CrowdedSends)
	}
}

// syncKey names a record of a frame.
func syncKey(frame uint32, record int) uint64 { return uint64(frame)<<16 | uint64(record) }

// pump sends what waits, in its order, as far as it goes.
func (c *Conn) pump(now clock.Time) {
	if c.over() {
		return
	}
	c.sendFragments(now)
	for s := c.pending.First(); s != nil && c.launch(now, s); s = c.pending.First() {
	}
	c.passed()
	if s := c.pending.First(); s != nil && s.Choice.Protocol == Eager && !c.crowd.IsSet() {
		c.endpoint.timers.Set(&c.crowd, max(now, s.posted)+c.endpoint.config.Crowded)
	}
	if c.pending.Len() == 0 && c.state == connEnding {
		c.sayLast()
	}
	if !c.idle() {
		c.wake()
	}
}

// announceCrowded has the message at the head announce itself, if it has waited too long for a
// slot: the receiver may want another one first. One that has waited for a large slot alone takes a
// small one.
func (c *Conn) announceCrowded(now clock.Time) {
	if s := c.pending.First(); s != nil && s.state == sendPending && s.Choice.Protocol == Eager &&
		now >= s.posted+c.endpoint.config.Crowded {
		c.gathered = false
		s.crowded = c.slots().free() == 0
	}
	c.pump(now)
}

// landed completes what waited for frames of a lane to be complete, or to be taken out.
func (c *Conn) landed(l *lane) {
	for s := l.flying.First(); s != nil && s.at <= l.arrived(); s = l.flying.First() {
		l.flying.Remove(&s.links)
		c.finish(s, nil)
	}
	for s := l.landing.First(); s != nil && s.at <= l.freed; s = l.landing.First() {
		l.landing.Remove(&s.links)
		c.finish(s, nil)
	}
}

// finish gives a message back to who sent it.
func (c *Conn) finish(s *Send, err error) {
	switch {
	case err == nil:
	case errors.Is(err, ErrCancelled):
		c.endpoint.count.Inc(CancelledSends)
	case c.err == nil:
		c.endpoint.count.Inc(RefusedSends)
	}
	s.state, s.Err = sendIdle, err
	c.endpoint.sent.Push(&s.links, s)
}

// sizes are those of large slots that there may be.
func (c *Conn) sizes() []int {
	needed := CapabilityProvision
	if c.mode() == LocalOnly {
		needed = rendezvousByKey
	}
	if c.agreed.Capabilities&needed == 0 {
		return nil
	}
	return c.classes()
}

// stopWriting forgets what the peer has asked for of a message.
func (c *Conn) stopWriting(s *Send) {
	c.puts.Remove(&s.links)
	c.fragments.Remove(&s.links)
	s.again = s.again[:0]
}
