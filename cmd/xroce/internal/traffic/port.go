package traffic

import (
	"errors"
	"fmt"

	"xroce/bpf"
	"xroce/xsk"
)

// errGenericZeroCopy says that what was asked for cannot be had together.
var errGenericZeroCopy = fmt.Errorf("zero-copy needs the XDP program in native mode, and it is in "+
	"generic mode: %w", errors.ErrUnsupported)

// modeUnder is the mode of sockets under an XDP program. In generic mode that never gives them the
// frames that the driver takes for zero-copy, so that is not asked for.
func modeUnder(attached bpf.Mode, asked xsk.Mode) (xsk.Mode, error) {
	switch {
	case attached != bpf.Generic:
		return asked, nil
	case asked == xsk.ModeZeroCopy:
		return asked, errGenericZeroCopy
	}
	return xsk.ModeCopy, nil
}

// AllQueues are all receive queues of an interface.
const AllQueues = -1

// PortOptions say how to open an interface.
type PortOptions struct {
	Interface string
	Queue     int // to send on; of a sink the one to take from, AllQueues for all
	Queues    int // of a sender that receives no answers: so many, from Queue on; 1 for 0
	Mode      xsk.Mode
	Attach    bpf.Mode // of a sink, and of a sender that receives
	Ports     []uint16 // UDP ports that a sink takes, besides that of RoCE v2
	// Types are the EtherTypes that a sink takes, or a sender that receives. That of RoCE v1 is
	// one of them, or is not taken.
	Types []uint16
	// Answers has a sender receive RoCE v2 packets, which the kernel then does not get.
	Answers bool
	// Transmit is how frames of a sender leave. With ByEither Fell, if not nil, is told once why
	// they do not go as live frames, now or later, by any goroutine.
	Transmit Transmit
	Fell     func(why error)
}
