//go:build !linux

package tunnel

import (
	"errors"
	"fmt"
	"runtime"
)

// OpenInside is of Linux; elsewhere it fails with errors.ErrUnsupported.
func OpenInside(c InsideConfig) (*Inside, error) {
	return nil, fmt.Errorf("tunnel: interface %s: %w", c.Name, errors.ErrUnsupported)
}

// yield lets other goroutines run.
func yield() { runtime.Gosched() }
