package bpf

import "fmt"

// A Filter says which frames a Collector takes: by EtherType, and UDP datagrams by destination
// port, behind at most two VLAN tags. All else, and fragments and IP headers with options or
// extensions, passes to the kernel.
type Filter struct {
	UDPPorts   []uint16
	EtherTypes []uint16
}

// maxFilter keeps the program short: it compares with one after the other.
const maxFilter = 16

// check refuses what makes no program.
func (f Filter) check() error {
	n := len(f.UDPPorts) + len(f.EtherTypes)
	if n == 0 || n > maxFilter {
		return fmt.Errorf("bpf: %d ports and EtherTypes, expected 1 to %d", n, maxFilter)
	}
	for _, e := range f.EtherTypes {
		if e == etherIPv4 || e == etherIPv6 || e == etherARP {
			return fmt.Errorf("bpf: EtherType %#04x is the kernel's", e)
		}
	}
	return nil
}

// EtherTypes that a Filter knows (kernel include/uapi/linux/if_ether.h).
const (
	etherIPv4 = 0x0800
	etherARP  = 0x0806
	etherVLAN = 0x8100
	etherIPv6 = 0x86dd
	etherQinQ = 0x88a8
)
