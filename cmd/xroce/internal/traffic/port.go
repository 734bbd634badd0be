package traffic

import (
	"xroce/bpf"
	"xroce/xsk"
)

// PortOptions say how to open an interface.
type PortOptions struct {
	Interface string
	Queue     int
	Mode      xsk.Mode
	Attach    bpf.Mode // of a sink, and of a sender that receives
	Ports     []uint16 // UDP ports that a sink takes, besides that of RoCE
	Types     []uint16 // EtherTypes that it takes, besides those of RoCE
	// Answers has a sender receive RoCE packets, which the kernel then does not get.
	Answers bool
}
