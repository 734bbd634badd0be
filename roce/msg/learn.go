package msg

import "xroce/roce/clock"

// What EnlargeAuto goes by: each way is tried first, then one in so many messages goes the way
// that was dearer, because what things cost changes.
const (
	learnFirst  = 4
	learnAgain  = 32
	learnWeight = 8 // a new measurement counts one part in so many
)

// The ways of a message that is too long for a small slot.
const (
	byRendezvous = iota
	byLarge
	ways
)

// A cost is what messages of a class have cost by each way: the time from when one left until the
// peer had taken it.
type cost struct {
	mean     [ways]clock.Time
	measured [ways]uint32
	chosen   uint32
}

// add counts a measurement.
func (k *cost) add(way int, took clock.Time) {
	if k.measured[way]++; k.measured[way] == 1 {
		k.mean[way] = took
	}
	k.mean[way] += (took - k.mean[way]) / learnWeight
}

// choose returns the way for one more message.
func (k *cost) choose() int {
	k.chosen++
	way := byRendezvous
	switch {
	case k.measured[byRendezvous] < learnFirst: // which asks for no memory of the peer
		return byRendezvous
	case k.measured[byLarge] < learnFirst:
		return byLarge
	case k.mean[byLarge] < k.mean[byRendezvous]:
		way = byLarge
	}
	if k.chosen%learnAgain == 0 {
		way = ways - 1 - way
	}
	return way
}

// A costs is what a connection has learned, by class.
type costs struct {
	classes [MaxClasses]cost
	// One frame of large slots at a time is watched, until its slot is free again.
	watching bool
	class    int
	frame    uint64
	since    clock.Time
}

// classOf is which of the sizes of large slots a message needs, -1 for none.
func (e *Endpoint) classOf(length int) int {
	for i, size := range e.config.Large {
		if length <= size {
			return i
		}
	}
	return -1
}

// measured is the protocol that costs less for a message, Auto when that is not asked for.
func (c *Conn) measured(s *Send) Protocol {
	config := &c.endpoint.config
	class := c.endpoint.classOf(s.length)
	if config.Policy != EnlargeAuto || class < 0 || s.length <= config.EagerLimit {
		return Auto
	}
	if s.way == 0 { // once for each message, however often it is looked at
		s.way = 1 + uint8(c.costs.classes[class].choose())
	}
	if s.way == 1+byLarge {
		return Provisioned
	}
	return Get
}

// watch measures what a frame in a large slot costs.
func (c *Conn) watch(now clock.Time, s *Send) {
	k := &c.costs
	if class := c.endpoint.classOf(s.length); !k.watching && class >= 0 {
		k.watching, k.class, k.frame, k.since = true, class, s.at, now
	}
}

// watched is told that the peer has given slots back.
func (c *Conn) watched() {
	if k := &c.costs; k.watching && c.lanes[large].freed >= k.frame {
		k.watching = false
		k.classes[k.class].add(byLarge, c.heard-k.since)
	}
}
