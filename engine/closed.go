package engine

import (
	"net"
	"os"
)

// ErrClosed says that an object was used after its Close. It is what Device.Err returns
// after Close. To errors.Is it is net.ErrClosed and os.ErrClosed as well.
var ErrClosed error = closedError{}

type closedError struct{}

// Error implements error.
func (closedError) Error() string { return "engine: used after Close" }

// Is reports whether another error says the same.
func (closedError) Is(target error) bool {
	return target == net.ErrClosed || target == os.ErrClosed
}
