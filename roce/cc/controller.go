package cc

import "xroce/roce/clock"

// A Controller decides what a flow may send by what it learns of the network. It is not
// safe for concurrent use, allocates nothing and never panics; times that it is given do
// not go back.
type Controller interface {
	// Rate returns the rate of frames in kbit/s, 0 for no limit.
	Rate() uint32
	// Window returns how many packets may be unacknowledged, 0 for no limit.
	Window() uint32

	// Sent follows a frame of n bytes that left.
	Sent(now clock.Time, n int)
	// Notified takes a congestion notification, and reports whether that means anything
	// to the controller.
	Notified(now clock.Time) bool
	// Acknowledged takes the news that so many more packets arrived, and the round trip of
	// one of them, 0 where none was measured.
	Acknowledged(now clock.Time, packets uint32, rtt clock.Time)
	// Lost follows a decision to send something again, because of a timeout or of what the
	// peer said.
	Lost(now clock.Time, timeout bool)

	// Deadline returns when HandleDeadline wants to be called, 0 for never.
	Deadline() clock.Time
	// HandleDeadline does what is due. Calling it early does nothing.
	HandleDeadline(now clock.Time)
}

var (
	_ Controller = (*DCQCN)(nil)
	_ Controller = (*Swift)(nil)
)
