//go:build !linux

package notify

import (
	"errors"
	"fmt"
)

// eventfd fails with errors.ErrUnsupported.
func eventfd(int) (fd int, err error) {
	return -1, fmt.Errorf("notify: eventfd: %w", errors.ErrUnsupported)
}
