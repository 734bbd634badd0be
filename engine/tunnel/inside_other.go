//go:build !linux

package tunnel

import (
	"errors"
	"fmt"
)

// OpenInside is of Linux; elsewhere it fails with errors.ErrUnsupported.
func OpenInside(c InsideConfig) (*Inside, error) {
	return nil, fmt.Errorf("tunnel: interface %s: %w", c.Name, errors.ErrUnsupported)
}
