//go:build !linux

package xsk

import (
	"fmt"
	"runtime"
)

// A Group is AF_XDP sockets on several queues, which only Linux has. On other systems OpenGroup
// always fails, as Open does.
type Group struct{ Socket }

// OpenGroup fails with ErrNotSupported.
func OpenGroup(cfg Config, _ []int) (*Group, error) {
	return nil, &Error{
		Op: "open", Ifindex: cfg.Ifindex, Queue: cfg.Queue,
		Err: fmt.Errorf("AF_XDP on %s: %w", runtime.GOOS, ErrNotSupported),
	}
}
