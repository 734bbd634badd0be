package msg

import (
	"fmt"
	"slices"

	"xroce/roce/clock"
)

// small and large are the kinds of slots, which have a lane each.
const (
	small = iota
	large
)

// maxAdvert is how many bytes all slots of a ring may have that a peer announces: our copy of
// them is as long.
const maxAdvert = 4 << 20

// makeRing asks for the memory of slots for the peer.
func (c *Conn) makeRing(class int, epoch uint32, slots, size int) *inRing {
	r := &inRing{conn: c, class: class, epoch: epoch, slots: slots, size: size}
	c.in = append(c.in, r)
	c.endpoint.registered += int64(slots) * int64(size)
	r.request = Request{Kind: Allocate, Conn: c, Size: slots * size, Remote: true, asker: r}
	c.endpoint.ask(&r.request)
	return r
}

// ringMade has the memory of slots, or not, and tells the peer.
func (c *Conn) ringMade(now clock.Time, r *inRing, m Memory, err error) {
	r.memory = m
	switch {
	case c.state == connDead:
		if err == nil {
			c.freeRing(r)
		}
		return
	case err != nil:
		c.dropRing(r)
		if r.class == 0 {
			c.ringRefused(now, err)
			return
		}
		c.nak(r.epoch, StatusNoMemory, 0)
		c.makeSmall()
		return
	case len(m.Bytes) != r.slots*r.size:
		c.fail(now, ErrOwner)
		return
	}
	r.state = ringOffered
	if old := c.smallRing(); r.replaces && old != nil {
		old.state, old.replacedBy = ringLeft, r
		c.vacate(old)
		return
	}
	c.offer(r)
}

// offer tells the peer of slots.
func (c *Conn) offer(r *inRing) {
	answer := Control{
		Type: TypeAdvert, Class: uint8(r.class), ID: r.epoch, Number: uint16(r.slots),
		Len: uint64(r.size),
	}
	c.name(&answer, &r.memory)
	if r.class != 0 {
		answer.Type = TypeProvisionAck
	}
	c.say(answer)
}

// ringRefused goes on with the small slots that the peer has. Without any it cannot send.
func (c *Conn) ringRefused(now clock.Time, err error) {
	if !slices.ContainsFunc(c.in, func(r *inRing) bool { return r.class == 0 }) {
		c.fail(now, err)
		return
	}
	c.epoch-- // the peer has not heard of it
	c.endpoint.count.Inc(RenewFailed)
}

// vacate frees a ring that the peer has left, once all of it was taken out.
func (c *Conn) vacate(r *inRing) {
	switch {
	case r.state != ringLeft || r.arrived != r.freed:
	case r.replacedBy != nil:
		c.dropRing(r)
		r.state = ringFreeing
		r.request = Request{Kind: Release, Conn: c, Given: r.memory, asker: r}
		c.endpoint.ask(&r.request)
	case r.class != 0:
		c.freeRing(r)
		c.say(Control{Type: TypeReleaseAck, Class: uint8(r.class), ID: r.epoch})
		c.makeSmall()
	default:
		c.freeRing(r)
	}
}

// smallRing is the small slots that the peer uses, nil when there are none.
func (c *Conn) smallRing() *inRing {
	for _, r := range c.in {
		if r.class == 0 && r.state == ringInUse {
			return r
		}
	}
	return nil
}

// makeSmall makes small slots again for a peer that has none of any kind: it has left the large
// ones that had replaced them.
func (c *Conn) makeSmall() {
	for _, r := range c.in {
		if r.state != ringLeft {
			return
		}
	}
	config := &c.endpoint.config
	c.epoch++
	c.makeRing(0, c.epoch, config.Slots, int(SlotLen(uint32(config.EagerLimit))))
}

// freeRing takes the key of a ring out of use and frees its memory.
func (c *Conn) freeRing(r *inRing) {
	c.dropRing(r)
	r.state = ringFreeing
	c.endpoint.giveBack(c, r.memory)
}

// dropRing forgets a ring.
func (c *Conn) dropRing(r *inRing) {
	for i, other := range c.in {
		if other == r {
			c.in = append(c.in[:i], c.in[i+1:]...)
			c.endpoint.registered -= int64(r.slots) * int64(r.size)
			return
		}
	}
}

// takeAdvert makes our copy of small slots that the peer announces; when it is there, they
// are used. A peer announces none before it was told that those before are.
func (c *Conn) takeAdvert(m *Control) error {
	size, slots := m.Len, uint64(m.Number)
	switch {
	case m.Class != 0:
		return ErrRange
	case c.offered != nil, c.lanes[small].ring != nil && m.ID != c.lanes[small].ring.epoch+1:
		return ErrEpoch
	case slots > MaxSlots, size > maxAdvert, size*slots > maxAdvert:
		return fmt.Errorf("%w: %d slots of %d bytes are announced, %d of %d bytes in all may be",
			ErrRange, slots, size, MaxSlots, maxAdvert)
	}
	r := &outRing{
		epoch: m.ID, slots: int(slots), size: int(size), remote: named(m),
		longest: int(size) - FrameHeaderLen - RecordHeaderLen,
	}
	c.offered = &offer{conn: c, ring: r}
	return c.offered.ask()
}

// wanted is how many bytes of slots our hello asks for.
func (c *Conn) wanted() uint64 { return uint64(c.ours.Slots) * SlotLen(c.ours.Payload) }

// An offer is slots of the peer that we make our copy of.
type offer struct {
	conn    *Conn
	ring    *outRing
	request Request
	asked   bool
}

// ask wants memory for our copy, once no ring is left from before the one in use. What we asked for
// in our hello is not held to the budget, so a peer that acknowledges no frame would have us make
// one copy after the other. To wait is all that comes of it for one whose acknowledgements are
// late: it goes on with the slots that it has, and announces no others meanwhile.
func (o *offer) ask() error {
	c, e, r := o.conn, o.conn.endpoint, o.ring
	n := r.slots * r.size
	switch {
	case o.asked, len(c.lanes[small].old) > 0:
		return nil
	case uint64(n) > c.wanted() && e.exceeds(int64(n)):
		return fmt.Errorf("%w: %d slots of %d bytes are announced, %d of %d bytes are in use",
			ErrQuota, r.slots, r.size, e.held, e.config.Registered)
	}
	o.asked = true
	o.request = Request{Kind: Allocate, Conn: c, Size: n, asker: o}
	e.ask(&o.request)
	return nil
}

func (o *offer) answer(now clock.Time, _ *Request, m Memory, err error) {
	c := o.conn
	switch {
	case c.state == connDead:
		if err == nil {
			c.endpoint.giveBack(c, m)
		}
		return
	case err != nil:
		c.fail(now, err)
		return
	case len(m.Bytes) != o.ring.slots*o.ring.size:
		c.fail(now, ErrOwner)
		return
	}
	o.ring.stage = m
	if !c.stream.lent() { // else once the slot is back
		o.use(now)
	}
}

// use writes to the slots from now on.
func (o *offer) use(now clock.Time) {
	c := o.conn
	c.offered = nil
	c.closeFrame()
	c.lanes[small].replace(o.ring)
	c.announced = true
	c.say(Control{Type: TypeAdvertAck, ID: o.ring.epoch})
	c.retire(&c.lanes[small])
	c.pump(now)
	c.stir()
}

// takeAdvertAck: no frame comes to small slots of an earlier epoch any more.
func (c *Conn) takeAdvertAck(m *Control) error {
	i := slices.IndexFunc(c.in, func(r *inRing) bool {
		return r.class == 0 && r.epoch == m.ID && r.state == ringOffered
	})
	if m.Class != 0 || i < 0 {
		return ErrEpoch
	}
	c.in[i].state = ringInUse
	for i := len(c.in) - 1; i >= 0; i-- {
		if r := c.in[i]; r.class == 0 && r.epoch != m.ID && r.state <= ringInUse {
			r.state = ringLeft
			c.vacate(r)
		}
	}
	return nil
}

// fewestSlots is how many small slots the peer has, of two rings the fewer.
func (c *Conn) fewestSlots() int {
	fewest := MaxSlots
	for _, r := range c.in {
		if r.class == 0 {
			fewest = min(fewest, r.slots)
		}
	}
	return fewest
}

// Renew gives the peer other small slots under a new key, as many as there are to be: more or
// fewer, or as many when the key may be known to others. The old ones stay until the peer has
// said that it has left them and the last message in them was taken out.
func (c *Conn) Renew(slots int) error {
	size := int(SlotLen(uint32(c.endpoint.config.EagerLimit)))
	if c.state != connOpen || slots < 2 || slots > MaxSlots || slots*size > maxAdvert {
		return ErrInvalid
	}
	if c.smallRing() == nil {
		return ErrState // it has large ones in their place, or is about to
	}
	for _, r := range c.in {
		if r.class == 0 && r.state != ringInUse || r.replaces && r.state == ringAsked {
			return ErrState // one after the other
		}
	}
	c.epoch++
	c.makeRing(0, c.epoch, slots, size)
	c.endpoint.count.Inc(Renewed)
	return nil
}
