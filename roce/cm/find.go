package cm

// This file finds the conversation that a message belongs to.

// find looks up the connection that a message is for, by both its IDs. It counts
// why there is none.
func (m *Machine) find(from *Path, local, remote uint32) *conn {
	c := m.conns[ID(local)]
	switch {
	case c == nil || c.peerKnown && c.remoteID != remote:
		m.count.Inc(DropUnknown)
	case !c.matches(from):
		m.count.Inc(DropWrongSource)
	default:
		return c
	}
	return nil
}
