package cm

import "xroce/roce/wire"

// A hostRequests is how many half-open requests a host has here.
type hostRequests struct {
	gid wire.GID
	n   int
}

// addHalfOpen counts a request that is half open from now on.
func (m *Machine) addHalfOpen(c *conn) {
	m.halfOpen.push(c)
	gid := c.path.Remote
	if m.hosts[gid] == nil {
		m.hosts[gid] = &hostRequests{gid: gid}
	}
	c.host = m.hosts[gid]
	c.host.n++
}

// removeHalfOpen takes out a request that is half open no more.
func (m *Machine) removeHalfOpen(c *conn) {
	m.halfOpen.remove(c)
	if c.host.n--; c.host.n == 0 {
		delete(m.hosts, c.host.gid)
	}
}

// victim chooses, among those that may be evicted, of which there is one, the request
// that makes room for a newer one: the oldest one of the host that has the most, so that
// a host that asks often evicts its own requests and not those of others.
func (m *Machine) victim(mayEvict func(*conn) bool) (victim *conn) {
	for c := m.halfOpen.first; c != nil; c = c.queue.next {
		if mayEvict(c) && (victim == nil || c.host.n > victim.host.n) {
			victim = c
		}
	}
	return victim
}
