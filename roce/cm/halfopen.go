package cm

// A Rank says what is known of the host that a request claims to come from.
type Rank uint8

// The ranks.
const (
	// RankStranger is a host that might not be there: it is the rank of each request that
	// comes, until somebody had the time to look.
	RankStranger Rank = iota
	// RankKnown is one with a known way to it, which is not that of the request or proves
	// nothing.
	RankKnown
	// RankNeighbour is one whose request came by the way on which it was found.
	RankNeighbour

	rankEnd
)

// A source is where half-open requests came from: a GID, or a station on a link.
type source struct {
	n     int
	among int // of those that may be evicted: see victim
}

// addHalfOpen counts a request that is half open from now on.
func (m *Machine) addHalfOpen(c *conn) {
	m.halfOpen.Push(&c.queue, c)
	c.host = enter(m.hosts, c.path.Remote)
	c.link = enter(m.links, c.path.Via)
}

// removeHalfOpen takes out a request that is half open no more.
func (m *Machine) removeHalfOpen(c *conn) {
	m.halfOpen.Remove(&c.queue)
	leave(m.hosts, c.path.Remote)
	leave(m.links, c.peer[0].via) // answers may go elsewhere by now
}

// enter counts one more from a source, which it returns.
func enter[K comparable](of map[K]*source, key K) *source {
	s := of[key]
	if s == nil {
		s = new(source)
		of[key] = s
	}
	s.n++
	return s
}

// leave counts one less.
func leave[K comparable](of map[K]*source, key K) {
	s := of[key]
	if s.n--; s.n == 0 {
		delete(of, key)
	}
}

// victim chooses, among those that may be evicted, of which there is one, the request that makes
// room for a newer one: one of the station that has sent more than half as many as there are, or of
// the lowest rank; of these, of the station that has sent the most, of the host that has the most,
// the oldest. Whoever asks often evicts requests of its own and not those of others.
func (m *Machine) victim(mayEvict func(*conn) bool) (victim *conn) {
	all := 0
	for c := m.halfOpen.First(); c != nil; c = c.queue.Next() {
		c.link.among = 0
	}
	for c := m.halfOpen.First(); c != nil; c = c.queue.Next() {
		if mayEvict(c) {
			all++
			c.link.among++
		}
	}
	for c := m.halfOpen.First(); c != nil; c = c.queue.Next() {
		if mayEvict(c) && (victim == nil || c.before(victim, all)) {
			victim = c
		}
	}
	return victim
}

// before reports whether a request makes room before one that came earlier, of so many. A stranger
// may be one only because nobody has looked yet: that is no reason to go before the known hosts of
// a station that asks for all, and so keeps others from being looked at. To those of a station that
// does not, it gives way: a stranger can have as many stations as it likes.
func (c *conn) before(earlier *conn, all int) bool {
	switch here, there := c.merit(all), earlier.merit(all); {
	case here != there:
		return here < there
	case c.link.among != earlier.link.among:
		return c.link.among > earlier.link.among
	case c.rank != earlier.rank:
		return c.rank < earlier.rank
	}
	return c.host.n > earlier.host.n
}

// merit is the rank of a request, and less than any for one of a station that has sent more than
// half as many as there are: also of a neighbour, to whom a host that nobody has looked for yet, or
// with an address that proves nothing, would give way each time.
func (c *conn) merit(all int) int {
	if c.link.among > all/2 {
		return -1
	}
	return int(c.rank)
}

// addSIDRWaiting counts a request for a datagram service that waits for the application.
func (m *Machine) addSIDRWaiting(q *query) {
	m.sidrWaiting.Push(&q.queue, q)
	q.via = q.path.Via
	q.link = enter(m.sidrLinks, q.via)
}

// removeSIDRWaiting takes out one that waits no more, and reports whether it had waited.
func (m *Machine) removeSIDRWaiting(q *query) bool {
	if !m.sidrWaiting.Remove(&q.queue) {
		return false
	}
	leave(m.sidrLinks, q.via)
	q.link = nil
	return true
}

// sidrVictim chooses the request for a datagram service that makes room for a newer one: the
// oldest of the station that has sent the most.
func (m *Machine) sidrVictim() *query {
	victim := m.sidrWaiting.First()
	for q := victim; q != nil; q = q.queue.Next() {
		if q.link.n > victim.link.n {
			victim = q
		}
	}
	return victim
}
