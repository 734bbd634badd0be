package msg

import "xroce/engine/cm"

// LeaveToCallers has nobody move messages but those who wait for one.
func (e *Endpoint) LeaveToCallers() { e.closeHandles() }

// WatchAnother has a further rail watched, as those of the connection are, whose peer never hangs
// up, and returns what loses it.
func (c *Conn) WatchAnother() (lose func()) {
	r := c.newRail(c.nic)
	r.cm = new(cm.Conn) // which is never done
	c.endpoint.watch(r)
	return func() { close(r.gone) }
}
