package cm

import "xroce/roce/wire"

// A crowd is how many half-open requests a host has here.
type crowd struct {
	gid wire.GID
	n   int
}

// join adds a half-open request.
func (m *Machine) join(c *conn) {
	m.waiting.push(c)
	gid := c.path.Remote
	if m.crowds[gid] == nil {
		m.crowds[gid] = &crowd{gid: gid}
	}
	c.crowd = m.crowds[gid]
	c.crowd.n++
}

// leave takes out a request that is half open no more.
func (m *Machine) leave(c *conn) {
	m.waiting.remove(c)
	if c.crowd.n--; c.crowd.n == 0 {
		delete(m.crowds, c.crowd.gid)
	}
}

// victim chooses the request that makes room for a newer one: the oldest one of the
// host that has the most, so that nobody can drive out others by asking often. There
// is one that is good.
func (m *Machine) victim(good func(*conn) bool) (victim *conn) {
	for c := m.waiting.first; c != nil; c = c.queue.next {
		if good(c) && (victim == nil || c.crowd.n > victim.crowd.n) {
			victim = c
		}
	}
	return victim
}
