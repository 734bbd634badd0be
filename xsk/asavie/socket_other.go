//go:build !linux || !amd64

package asavie

import (
	"fmt"
	"runtime"
	"time"

	"xroce/xsk"
)

// A Socket exists on Linux on amd64 only: the library has no memory barriers.
// Elsewhere Open always fails, and the methods are there so that users compile.
type Socket struct{}

var _ xsk.Link = (*Socket)(nil)

// Open fails with xsk.ErrNotSupported.
func Open(cfg Config) (*Socket, error) {
	return nil, &xsk.Error{
		Op: "asavie open", Ifindex: cfg.Ifindex, Queue: cfg.Queue,
		Err: fmt.Errorf("asavie/xdp on %s/%s: %w",
			runtime.GOOS, runtime.GOARCH, xsk.ErrNotSupported),
	}
}

// FD returns -1.
func (*Socket) FD() int { return -1 }

// Sockets does nothing.
func (*Socket) Sockets(func(queue, fd int) error) error { return nil }

// Info returns nothing.
func (*Socket) Info() xsk.Info { return xsk.Info{} }

// Receive returns 0.
func (*Socket) Receive([]xsk.RxFrame) int { return 0 }

// Release does nothing.
func (*Socket) Release([]xsk.RxFrame) {}

// Reserve returns 0.
func (*Socket) Reserve([]xsk.TxFrame) int { return 0 }

// Transmit does nothing.
func (*Socket) Transmit([]xsk.TxFrame) {}

// Return does nothing.
func (*Socket) Return([]xsk.TxFrame) {}

// Flush fails with xsk.ErrNotSupported.
func (*Socket) Flush() error { return xsk.ErrNotSupported }

// Pending returns false.
func (*Socket) Pending() bool { return false }

// Wait fails with xsk.ErrNotSupported.
func (*Socket) Wait(time.Duration) error { return xsk.ErrNotSupported }

// Wake does nothing.
func (*Socket) Wake() {}

// Stats fails with xsk.ErrNotSupported.
func (*Socket) Stats() (xsk.Stats, error) { return xsk.Stats{}, xsk.ErrNotSupported }

// Close does nothing.
func (*Socket) Close() error { return nil }
