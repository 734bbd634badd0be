//go:build !linux

package xsktest

import (
	"errors"
	"fmt"
)

// rootError says what is missing for tests that need root.
func rootError() error {
	return fmt.Errorf("no network namespaces and no AF_XDP: %w", errors.ErrUnsupported)
}
