//go:build !linux

package pager

import (
	"errors"
	"fmt"
)

// try says that paging needs mincore and madvise as Linux has them.
func try() error {
	return fmt.Errorf("pager: on-demand paging needs Linux: %w", errors.ErrUnsupported)
}
