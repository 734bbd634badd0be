package traffic

import (
	"xroce/bpf"
	"xroce/xsk"
)

// AllQueues are all receive queues of an interface.
const AllQueues = -1

// PortOptions say how to open an interface.
type PortOptions struct {
	Interface string
	Queue     int // to send on; of a sink the one to take from, AllQueues for all
	Queues    int // of a sender that receives no answers: so many, from Queue on; 1 for 0
	Mode      xsk.Mode
	Attach    bpf.Mode // of a sink, and of a sender that receives
	Ports     []uint16 // UDP ports that a sink takes, besides that of RoCE
	Types     []uint16 // EtherTypes that it takes, besides those of RoCE
	// Answers has a sender receive RoCE packets, which the kernel then does not get.
	Answers bool
	// Transmit is how frames of a sender leave. With ByEither Fell, if not nil, is told once why
	// they do not go as live frames, now or later, by any goroutine.
	Transmit Transmit
	Fell     func(why error)
}
