//go:build !linux

package vethpair

import (
	"errors"
	"fmt"
)

// Sweep fails with errors.ErrUnsupported: only Linux has network namespaces.
func Sweep() ([]string, error) {
	return nil, fmt.Errorf("vethpair: network namespaces: %w", errors.ErrUnsupported)
}
