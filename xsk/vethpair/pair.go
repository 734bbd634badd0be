package vethpair

import (
	"net"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/vishvananda/netns"
)

// Side is one end of a pair.
type Side int

// The two ends.
const (
	A Side = iota
	B
)

// middle is where frames are scattered and lost, which is no end.
const middle Side = 2

// String returns "a" or "b".
func (s Side) String() string { return [...]string{"a", "b", "s"}[s] }

// Scatter says which receive queue of the other end a frame comes to, when it is not the one
// with the number of the transmit queue.
type Scatter uint8

// The ways to scatter.
const (
	ScatterNone   Scatter = iota
	ScatterFlows          // by a hash of addresses and ports, as a card does (RSS)
	ScatterFrames         // each frame anywhere: frames of a flow overtake each other
)

// IfName is the name of the interface, the same in both namespaces.
const IfName = "xr0"

// Defaults of Options.
const (
	DefaultMTU        = 1500
	DefaultQueues     = 1
	DefaultPfifoLimit = 1000
)

// Options say what pair to make. The zero value is a lossless pair with one
// queue and an MTU of 1500.
type Options struct {
	MTU    int // bytes; default DefaultMTU
	Queues int // receive and transmit queues of each end; default DefaultQueues

	// NoQdisc leaves the ends without queueing discipline: a full ring then
	// drops frames instead of pushing back.
	NoQdisc bool
	// PfifoLimit is the length of the pfifo in frames; default DefaultPfifoLimit.
	PfifoLimit int
	// Threaded moves receiving from the sender's system call to a kernel thread
	// of the receiving end (threaded NAPI).
	Threaded bool
	// Scatter has frames come to any queue. A third namespace is in the middle of the wire then.
	Scatter Scatter
	// LossPPM is how many frames of a million are lost on their way, in each direction, by chance;
	// Pair.Lost counts them. A third namespace is in the middle of the wire then, which scatters
	// flows if nothing else is said.
	LossPPM int
	// NoAddrs leaves the ends without addresses, and with IPv6 switched off so
	// that the kernel sends nothing of its own.
	NoAddrs bool
}

// End is one end of the wire.
type End struct {
	Namespace string // name of the network namespace, as in `ip netns`
	Name      string // interface name
	Ifindex   int    // interface index in its namespace
	MAC       net.HardwareAddr
	IPv4      netip.Prefix // zero with NoAddrs
	IPv6      netip.Prefix // zero with NoAddrs

	ns netns.NsHandle
}

// A Pair is two namespaces joined by a veth pair. Safe for concurrent use.
type Pair struct {
	A, B End

	middle  End           // with Options.Scatter or Options.LossPPM
	lost    lossCount     // with Options.LossPPM
	further atomic.Uint32 // wires beside the first
	once    sync.Once
	err     error
}

// End returns the given end.
func (p *Pair) End(s Side) *End { return [...]*End{&p.A, &p.B, &p.middle}[s] }
