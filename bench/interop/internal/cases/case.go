package cases

import (
	"fmt"
	"slices"
	"strings"
)

// A Role is what xroce is in a case.
type Role string

// The roles.
const (
	WeServe   Role = "server" // xroce serves, the tool in the VM is the client
	TheyServe Role = "client" // the tool serves, xroce is the client
)

// roles are both.
var roles = []Role{WeServe, TheyServe}

// A Case is one conversation between xroce and a tool.
type Case struct {
	Tool      string   `json:"tool"` // the program in the VM
	Role      Role     `json:"role"` // of xroce
	Transport string   `json:"transport"`
	CM        bool     `json:"rdma_cm"`  // connected by rdma_cm, not by the tool over TCP
	MTU       int      `json:"path_mtu"` // bytes
	Family    int      `json:"family"`   // 4 or 6
	Size      int      `json:"size"`     // bytes of a message, 0 where the tool has one size
	Flags     []string `json:"flags,omitempty"`
	Fault     Fault    `json:"fault,omitempty"`
	// Trace makes it a comparison of its packets with those of two Soft-RoCE
	// hosts, of few messages.
	Trace bool `json:"trace,omitempty"`
	// Card is the network card of a VM that xroce runs in, as QEMU calls it; "" where it runs
	// in a namespace.
	Card string `json:"card,omitempty"`
	// Self has xroce in the place of the tool, too, in a VM of the same kind.
	Self bool `json:"self,omitempty"`
	// Generic has the XDP program in generic mode, though the card could do more.
	Generic bool `json:"generic,omitempty"`
}

// A Fault is what goes wrong while a case runs.
type Fault string

// The faults.
const (
	NoFault Fault = ""
	Loss    Fault = "loss"    // the cable loses one frame in a hundred
	Restart Fault = "restart" // rxe0 is removed and made again
	Refused Fault = "refused" // nobody listens where the client goes, of a Trace
	Larger  Fault = "larger"  // the client's messages are larger than the server expects
	Fewer   Fault = "fewer"   // the client sends fewer than the server expects
	Cut     Fault = "cut"     // the cable loses everything after some packets

	// Those of a card, in the middle of a transfer.
	Rings    Fault = "rings"    // ethtool -G: rings of another size
	Channels Fault = "channels" // ethtool -L: more queues, and fewer
	Resized  Fault = "mtu"      // another MTU, and the old one
	Down     Fault = "down"     // the interface is taken down, and up again
	Detached Fault = "detached" // somebody detaches the XDP program
)

// exchangeByCM is the flag with which perftest has its exchange over rdma_cm, and connects its
// queue pairs without it.
const exchangeByCM = "-z"

// The multicast group of cases that have one, and as perftest has it: a GID in decimal.
const (
	group       = "239.255.185.15"
	groupAsTold = "0:0:0:0:0:0:0:0:0:0:255:255:239:255:185:15"
)

// Multicast reports whether the case sends to a multicast group.
func (c Case) Multicast() bool { return slices.Contains(c.Flags, "-g") }

// ListensByCM reports whether a server of perftest listens by rdma_cm, not over TCP.
func (c Case) ListensByCM() bool { return c.CM || slices.Contains(c.Flags, exchangeByCM) }

// Name names a case, for people and for --only.
func (c Case) Name() string {
	parts := []string{c.Tool, string(c.Role)}
	if c.Transport != "" {
		parts = append(parts, strings.ToLower(c.Transport))
	}
	if c.CM && strings.HasPrefix(c.Tool, "ib_") {
		parts = append(parts, "rdma_cm")
	}
	if c.MTU > 0 {
		parts = append(parts, fmt.Sprintf("mtu%d", c.MTU), fmt.Sprintf("ipv%d", c.Family))
	}
	if c.Size > 0 {
		parts = append(parts, fmt.Sprintf("%dB", c.Size))
	}
	if len(c.Flags) > 0 {
		last := c.Flags[len(c.Flags)-1]
		parts = append(parts, strings.ToLower(strings.TrimLeft(last, "-")))
	}
	if c.Trace {
		parts = append(parts, "trace")
	}
	if c.Card != "" {
		parts = append(parts, c.Card)
	}
	if c.Self {
		parts = append(parts, "self")
	}
	if c.Generic {
		parts = append(parts, "generic")
	}
	if c.Fault != NoFault {
		parts = append(parts, string(c.Fault))
	}
	return strings.Join(parts, "/")
}
