//go:build !linux

package demo

import (
	"errors"
	"fmt"
)

// namespaces fails with errors.ErrUnsupported.
func namespaces(int) (*cable, error) {
	return nil, fmt.Errorf("network namespaces: %w", errors.ErrUnsupported)
}
