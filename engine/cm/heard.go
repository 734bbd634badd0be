package cm

// listen has a passive connection that waits for the RTU made by the first request to its
// queue pair, too, whose PSN only who has the REP knows. An RTU is sent once: where it is lost, the
// peer repeats it when our REP comes again, but a REP that was answered by an MRA does not come for
// a minute.
func (c *Conn) listen() {
	m := c.manager
	c.qp.OnEstablished(func() {
		m.heard.add(c)
		m.wake()
	})
}

// takeHeard notes the connections whose peers were heard before their RTU. The caller holds mu.
func (m *Manager) takeHeard() {
	for _, c := range m.heard.take() {
		if m.conns[c.id] == c {
			// Most have had their RTU, or are over.
			_ = m.machine.CommEst(c.id)
		}
	}
}
