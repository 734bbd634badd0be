package cm

import "xroce/roce/clock"

// NextDeadline returns when the machine wants HandleDeadline to be called, false
// for never.
func (m *Machine) NextDeadline() (clock.Time, bool) { return m.timers.Next() }

// HandleDeadline repeats, gives up and forgets what is due. It may be called at
// any time.
func (m *Machine) HandleDeadline(now clock.Time) { m.timers.Expire(now) }
