//go:build !linux

package xsk

import (
	"fmt"
	"runtime"
	"time"
)

// A Socket is an AF_XDP socket, which only Linux has. On other systems Open
// always fails, so no Socket exists and its methods cannot be reached; they are
// there so that users of the package compile.
type Socket struct{}

var _ Link = (*Socket)(nil)

// Open fails with ErrNotSupported.
func Open(cfg Config) (*Socket, error) {
	return nil, &Error{
		Op: "open", Ifindex: cfg.Ifindex, Queue: cfg.Queue,
		Err: fmt.Errorf("AF_XDP on %s: %w", runtime.GOOS, ErrNotSupported),
	}
}

// FD returns -1.
func (*Socket) FD() int { return -1 }

// Sockets does nothing.
func (*Socket) Sockets(func(queue, fd int) error) error { return nil }

// Info returns nothing.
func (*Socket) Info() Info { return Info{} }

// Receive returns 0.
func (*Socket) Receive([]RxFrame) int { return 0 }

// Release does nothing.
func (*Socket) Release([]RxFrame) {}

// Reserve returns 0.
func (*Socket) Reserve([]TxFrame) int { return 0 }

// Transmit does nothing.
func (*Socket) Transmit([]TxFrame) {}

// Return does nothing.
func (*Socket) Return([]TxFrame) {}

// Forward returns 0.
func (*Socket) Forward([]RxFrame) int { return 0 }

// Flush fails with ErrNotSupported.
func (*Socket) Flush() error { return ErrNotSupported }

// Pending returns false.
func (*Socket) Pending() bool { return false }

// Wait fails with ErrNotSupported.
func (*Socket) Wait(time.Duration) error { return ErrNotSupported }

// Wake does nothing.
func (*Socket) Wake() {}

// Stats fails with ErrNotSupported.
func (*Socket) Stats() (Stats, error) { return Stats{}, ErrNotSupported }

// Close does nothing.
func (*Socket) Close() error { return nil }

// Probe fails with ErrNotSupported.
func Probe(ifindex, queue int) (Support, error) {
	_, err := Open(Config{Ifindex: ifindex, Queue: queue})
	return Support{}, err
}
