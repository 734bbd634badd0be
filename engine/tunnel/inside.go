package tunnel

import (
	"errors"
	"fmt"
	"io"

	"xroce/encap"
	"xroce/encap/inner"
)

// InsideKind is what an inside carries.
type InsideKind uint8

// The kinds of insides.
const (
	TAP InsideKind = iota // Ethernet frames
	TUN                   // IP packets
)

// String is tap or tun.
func (k InsideKind) String() string {
	if k == TUN {
		return "tun"
	}
	return "tap"
}

// A Queue is one of the queues of an inside. Read and Write each take one datagram with a
// header of virtio-net (inner.VNet) before it. A Read that waits ends with Close.
type Queue interface{ io.ReadWriteCloser }

// An Inside is the device on the kernel's side of a tunnel.
type Inside struct {
	Name   string
	Kind   InsideKind
	MTU    int     // bytes of IP in a datagram
	Queues []Queue // at least one
}

// Close closes all queues. An interface that was made for them goes with the last one.
func (i *Inside) Close() error {
	var errs []error
	for _, q := range i.Queues {
		errs = append(errs, q.Close())
	}
	return errors.Join(errs...)
}

// InsideConfig says which device to open.
type InsideConfig struct {
	Name   string // of the interface, 1 to 15 bytes
	Kind   InsideKind
	MTU    int // 68 to 65,521, 0 for DefaultMTU
	Queues int // 1 to MaxQueues, 0 for 1
	// Polled makes a queue that makes nobody wait, for a device in direct mode: see PolledQueue.
	Polled bool
	// Whole asks the kernel for packets of TCP that are not cut yet.
	Whole bool
}

// Limits of an InsideConfig.
const (
	MaxQueues  = 16
	DefaultMTU = 1500
	minMTU     = 68    // RFC 791
	maxMTU     = 65521 // of a TUN; what is longer has no IP header that could say it
	maxName    = 15
)

func (c *InsideConfig) check() error {
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.Queues == 0 {
		c.Queues = 1
	}
	switch {
	case c.Name == "" || len(c.Name) > maxName:
		return fmt.Errorf("tunnel: the name of an interface has 1 to %d bytes, not %q", maxName,
			c.Name)
	case c.MTU < minMTU || c.MTU > maxMTU:
		return fmt.Errorf("tunnel: an MTU of %d is not in %d..%d", c.MTU, minMTU, maxMTU)
	case c.Polled && c.Queues > 1:
		return fmt.Errorf("tunnel: %d queues, and one can be polled", c.Queues)
	case c.Queues < 1 || c.Queues > MaxQueues:
		return fmt.Errorf("tunnel: %d queues are not in 1..%d", c.Queues, MaxQueues)
	}
	return nil
}

// within is the longest IP packet in a datagram that is so long: a frame may have two VLAN tags.
func (k InsideKind) within(datagram int) int {
	if k == TAP {
		return datagram - inner.EthernetLen - 8
	}
	return datagram
}

// kindOf says what a datagram from inside is, 0 for nothing that is carried.
func (k InsideKind) kindOf(datagram []byte) encap.Kind {
	switch {
	case k == TAP:
		return encap.Ethernet
	case len(datagram) == 0:
		return 0
	case datagram[0]>>4 == 4:
		return encap.IPv4
	case datagram[0]>>4 == 6:
		return encap.IPv6
	}
	return 0
}
