//go:build !linux

package dump

import (
	"errors"

	"xroce/engine/capture"
)

// A Wire is a Source of copies of the packets of an interface, which there is on Linux.
type Wire struct{ Source }

// OpenWire begins to copy what an interface receives and sends.
func OpenWire(string, capture.Filter, int) (*Wire, error) { return nil, errors.ErrUnsupported }
