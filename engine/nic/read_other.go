//go:build !linux

package nic

import (
	"errors"
	"fmt"
	"runtime"
)

// Read fails with errors.ErrUnsupported.
func Read(string) (Card, error) {
	return Card{}, fmt.Errorf("network cards on %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
