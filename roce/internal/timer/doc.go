// Package timer has the timers of a machine: of many things that are to happen at a time, which
// is the next. A machine has no clock; it tells when it wants to be called, and does then what
// is due:
//
//	func (m *Machine) NextDeadline() (clock.Time, bool) { return m.timers.Next() }
//	func (m *Machine) HandleDeadline(now clock.Time)    { m.timers.Expire(now) }
//
// Setting and stopping take a time that grows with the logarithm of how many are set, and
// allocate nothing but the room for one more. It is the caller who keeps two goroutines from
// using timers of one set at once.
package timer
