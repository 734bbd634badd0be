package host

import "net/netip"

// A Port is the interface that a device runs on.
type Port struct {
	Name  string
	Index int
	MAC   [6]byte
	MTU   int // bytes, without the Ethernet header
	Up    bool
	Addrs []netip.Addr
	VLANs []VLAN // the VLAN interfaces on it, in the order in which they were made
}

// A VLAN is an interface on a port whose frames have an 802.1Q tag.
type VLAN struct {
	ID    uint16 // 1 to 4094
	Name  string
	Index int
	MAC   [6]byte
	Addrs []netip.Addr
}
