package engine

import (
	"errors"
	"fmt"

	"xroce/roce/mem"
)

// busy has mem.ErrBusy, of a region that windows or layouts refer to, wrap ErrBusy as well,
// which is what everything else of a device says that is in use.
func busy(err error) error {
	if errors.Is(err, mem.ErrBusy) {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	return err
}
