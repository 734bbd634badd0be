package xsk

import (
	"errors"
	"fmt"
)

// Errors that are not the kernel's.
var (
	// ErrNotSupported says that the operating system or the kernel lacks
	// AF_XDP or the feature asked for. It is errors.ErrUnsupported.
	ErrNotSupported = errors.ErrUnsupported

	// ErrClosed is returned by the methods of a closed Socket.
	ErrClosed = errors.New("xsk: socket is closed")
)

// An Error is a failed operation on the socket of one queue.
type Error struct {
	Op      string // what failed: "socket", "bind", "send", ...
	Ifindex int    // interface index
	Queue   int    // queue number
	Err     error  // the cause; errors.Is finds a unix.Errno in it
	Hint    string // what to do about it, or empty
}

// Error returns one line with the operation, the queue, the cause and the hint.
func (e *Error) Error() string {
	s := fmt.Sprintf("xsk: %s (ifindex %d queue %d): %v", e.Op, e.Ifindex, e.Queue, e.Err)
	if e.Hint != "" {
		s += ": " + e.Hint
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }
