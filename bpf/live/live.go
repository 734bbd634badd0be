package live

import (
	"errors"
	"fmt"
)

// Frames is how many frames a Transmitter has room for, and sends with one run at the most. As in
// live.c.
const Frames = 1024

// MinFrame is the shortest frame in bytes that can be sent: an Ethernet header.
const MinFrame = 14

// ErrRefused says that the interface takes no frames from XDP programs, now or at all. It is
// errors.ErrUnsupported.
var ErrRefused = fmt.Errorf("the interface takes no frames from XDP programs, or is down: %w",
	errors.ErrUnsupported)
