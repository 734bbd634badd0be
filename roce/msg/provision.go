package msg

import (
	"xroce/roce/clock"
	"xroce/roce/internal/timer"
)

// asking is the sender's part of provisioning: it makes a larger buffer of its own, asks the
// peer for one, and uses both when the peer's is there. Messages behind the one that was too
// long wait meanwhile, because order is kept.
type asking struct {
	conn    *Conn
	state   askingState
	epoch   uint32 // of the last one
	class   int
	size    int        // of a slot
	refused int        // the smallest size that the peer has refused, 0 for none
	until   clock.Time // it is not asked again before
	// replacing says that the peer may take the small slots away: until it has answered, nothing
	// is written there, however long that takes.
	replacing bool
	stage     Memory
	request   Request
	patience,
	idle timer.Timer
}

type askingState uint8

const (
	askingNothing    askingState = iota
	askingAllocating             // memory of ours
	askingPeer                   // the REQ is out
)

// classes are the sizes of large slots that there may be, here and at the peer.
func (c *Conn) classes() []int {
	if c.stream.on {
		return c.endpoint.streamClasses[:]
	}
	return c.endpoint.config.Large
}

// largeSlots is how many large slots there are of a size.
func (c *Conn) largeSlots() int {
	if c.stream.on {
		return c.endpoint.config.StreamSlots
	}
	return c.endpoint.config.LargeSlots
}

// sharers is how many messages that are as long together as a large slot takes have room in it,
// beside their headers: so two, four, eight or sixteen of a length that is a power of two fill one
// whose length is such a power, too.
const sharers = 16

// largeLen is how long a large slot is for messages of so many bytes. Of a stream, whose records
// are as long as there is room, none share one.
func (c *Conn) largeLen(payload int) uint64 {
	n := SlotLen(uint32(payload))
	if c.stream.on {
		return n
	}
	return n + (sharers-1)*RecordHeaderLen
}

// mode is what large slots are to small ones. Those of a stream are beside them always.
func (c *Conn) mode() Mode {
	if c.stream.on {
		return Keep
	}
	return c.endpoint.config.Mode
}

// maxOldLarge is how many large slots that we have left may be there, because the peer has not
// acknowledged what we wrote, when others are made: one that never does shall not have all memory
// of slots. The peer does not make us more than two kinds at a time either.
const maxOldLarge = 2

// provision begins to make large slots for messages of that size.
func (c *Conn) provision(now clock.Time, slot int) {
	a := &c.asking
	if a.state != askingNothing {
		return
	}
	for i, size := range c.classes() {
		if size == slot {
			a.class = i + 1
		}
	}
	a.state, a.size = askingAllocating, int(c.largeLen(slot))
	if c.mode() == LocalOnly {
		a.size = slot // there is nothing but the message in it
	}
	n := c.largeSlots() * a.size
	if c.endpoint.exceeds(int64(n)) || len(c.lanes[large].old) >= maxOldLarge {
		c.endpoint.count.Inc(ProvisionFailed)
		a.giveUp(now, 0)
		return
	}
	a.request = Request{
		Kind: Allocate, Conn: c, Size: n, asker: a, ToRead: c.mode() == LocalOnly,
	}
	c.endpoint.ask(&a.request)
}

// answer is told that our own large buffer is there.
func (a *asking) answer(now clock.Time, _ *Request, m Memory, err error) {
	c := a.conn
	config := &c.endpoint.config
	switch {
	case c.state == connDead:
		if err == nil {
			c.endpoint.giveBack(c, m)
		}
		return
	case err != nil:
		c.endpoint.count.Inc(ProvisionFailed)
		a.giveUp(now, 0)
		return
	case len(m.Bytes) != c.largeSlots()*a.size:
		c.fail(now, ErrOwner)
		return
	}
	if c.mode() == LocalOnly {
		a.state, a.refused = askingNothing, 0
		c.setLocal(&localRing{memory: m, size: a.size, taken: make([]bool, config.LargeSlots)})
		c.localUsed = now
		c.endpoint.timers.Set(&a.idle, now+config.Idle)
		c.pump(now)
		return
	}
	a.stage, a.state = m, askingPeer
	a.epoch++
	c.endpoint.count.Inc(ProvisionRequests)
	req := Control{
		Type: TypeProvisionReq, Class: uint8(a.class), ID: a.epoch,
		Number: uint16(c.largeSlots()), Len: uint64(a.size),
	}
	if c.mode() == Replace && c.lanes[small].ring != nil {
		req.Flags, a.replacing = FlagReplace, true
		c.sayInOrder(req)
		return
	}
	c.say(req)
	c.endpoint.timers.Set(&a.patience, now+config.Patience)
}

// giveUp goes on without large slots of the size; refused is the smallest that would be
// refused again, 0 for this one.
func (a *asking) giveUp(now clock.Time, refused int) {
	c := a.conn
	c.endpoint.timers.Stop(&a.patience)
	if a.stage.Bytes != nil {
		c.endpoint.giveBack(c, a.stage)
	}
	if refused == 0 {
		refused = c.classes()[a.class-1]
	}
	a.state, a.stage, a.refused, a.replacing = askingNothing, Memory{}, refused, false
	a.until = now + c.endpoint.config.Idle
	c.pump(now)
}

// takeProvisionAck uses the large slots that the peer has made.
func (c *Conn) takeProvisionAck(now clock.Time, m *Control) error {
	a := &c.asking
	late := a.state != askingPeer || m.ID != a.epoch
	switch {
	case m.ID == 0 || int32(m.ID-a.epoch) > 0:
		return ErrEpoch // that was never asked for
	case late:
		// We did not wait any longer. Nothing was written there.
		c.endpoint.count.Inc(ProvisionLate)
		c.say(Control{Type: TypeRelease, Class: m.Class, ID: m.ID})
		return nil
	case int(m.Class) != a.class, m.Len != uint64(a.size),
		int(m.Number) > c.largeSlots():
		return ErrRange
	}
	c.endpoint.timers.Stop(&a.patience)
	l := &c.lanes[large]
	c.leaveLarge()
	l.replace(&outRing{
		class: a.class, epoch: m.ID, slots: int(m.Number), size: a.size, stage: a.stage,
		remote: named(m), longest: c.classes()[a.class-1],
	})
	if a.replacing {
		c.lanes[small].replace(nil)
	}
	a.state, a.stage, a.refused, a.replacing = askingNothing, Memory{}, 0, false
	c.announced = true // also when those before were given up meanwhile
	l.used = now
	c.endpoint.timers.Set(&a.idle, now+c.endpoint.config.Idle)
	c.retire(l)
	c.retire(&c.lanes[small])
	c.pump(now)
	return nil
}

// takeProvisionNak goes on without.
func (c *Conn) takeProvisionNak(now clock.Time, m *Control) error {
	a := &c.asking
	if a.state != askingPeer || m.ID != a.epoch {
		return nil // we did not wait any longer
	}
	c.endpoint.count.Inc(ProvisionRefused)
	refused := 0
	for _, size := range c.classes() {
		if c.largeLen(size) > m.Len {
			refused = size
			break
		}
	}
	a.giveUp(now, refused)
	return nil
}

// leaveLarge says that no more frame comes to the large slots in use.
func (c *Conn) leaveLarge() {
	if r := c.lanes[large].ring; r != nil {
		c.sayInOrder(Control{Type: TypeRelease, Class: uint8(r.class), ID: r.epoch})
	}
}

// shrink gives up large slots that nobody has used for long.
func (c *Conn) shrink(now clock.Time) {
	l := &c.lanes[large]
	switch due := max(l.used, c.localUsed) + c.endpoint.config.Idle; {
	case l.ring == nil && c.local == nil || c.state != connOpen:
	case now < due:
		c.endpoint.timers.Set(&c.asking.idle, due)
	case c.local != nil:
		c.setLocal(nil)
		c.endpoint.count.Inc(Shrunk)
	case c.stream.lender == l: // somebody fills a slot, however long that takes
		c.endpoint.timers.Set(&c.asking.idle, now+c.endpoint.config.Idle)
	default:
		c.leaveLarge()
		l.replace(nil)
		c.retire(l)
		c.asking.refused = 0
		c.announced = c.lanes[small].ring != nil // else the peer announces others
		c.endpoint.count.Inc(Shrunk)
		c.stir() // who waits for a large slot has small ones
	}
}
