package msg

import "xroce/roce/msg"

// A RailState is a rail of a connection as it is now.
type RailState struct {
	Up    bool          // it carries messages
	Usage msg.RailUsage // what went by it from the beginning, also before it was lost
}

// Rails returns the rails of a connection, as many as the endpoint has, in its order. The bytes
// of each are those that this end sends, writes and reads.
func (c *Conn) Rails() []RailState {
	e := c.endpoint
	e.mu.Lock()
	defer e.mu.Unlock()
	states := make([]RailState, len(e.nics))
	for i := range states {
		states[i].Usage = c.past[i]
	}
	for _, r := range c.rails {
		s := &states[r.nic.number]
		s.Up = s.Up || !r.core.Lost()
		s.Usage.Add(r.core.Usage())
	}
	return states
}

// Rails returns the rails of the stream, as Conn.Rails does.
func (s *Stream) Rails() []RailState { return s.conn.Rails() }

// count keeps what went by a rail that is given back. The caller holds the endpoint's lock.
func (c *Conn) count(r *rail) { c.past[r.nic.number].Add(r.core.Usage()) }
