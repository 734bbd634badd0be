package cm

import "xroce/roce"

// This file ends connections whose peers are silent. The queue pair asks them: see
// roce/keepalive.go.

// watch turns the keepalive on, now that both ends are connected. The caller holds mu.
func (c *Conn) watch() {
	if c.alive == 0 || c.err != nil {
		return
	}
	m := c.manager
	c.qp.OnFatal(func() {
		m.quiet.add(c)
		m.wake()
	})
	// Only a queue pair that has failed meanwhile refuses it.
	_ = c.qp.Modify(&roce.Attr{Keepalive: c.alive}, roce.AttrKeepalive)
}

// endQuiet ends the connections whose peers did not answer. The caller holds mu.
func (m *Manager) endQuiet() {
	for _, c := range m.quiet.take() {
		if c.err == nil && c.qp.Silent() {
			c.hangUp(ErrKeepalive)
		}
	}
}
