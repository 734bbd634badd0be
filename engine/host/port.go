package host

import (
	"net/netip"

	"xroce/roce/wire"
)

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

// A VLAN is an interface on a port whose frames have a VLAN tag, or on such an interface, where
// they have two.
type VLAN struct {
	ID    wire.VLAN
	Name  string
	Index int
	MAC   [6]byte
	Addrs []netip.Addr
}

// stacked reports whether a VLAN is on another one.
func (v VLAN) stacked() bool { return v.ID.Tags(0).Len() > wire.TagLen }

// vlanAt is the VLAN of an interface, if it is the port, which has none, or on it.
func (p Port) vlanAt(index int) (vlan wire.VLAN, ok bool) {
	if index == p.Index {
		return 0, true
	}
	for _, v := range p.VLANs {
		if v.Index == index {
			return v.ID, true
		}
	}
	return 0, false
}

// ActiveMTU is the largest path MTU that the port has, 0 when not even the least fits. Switches and
// drivers have room for one VLAN tag beside the MTU: where an address has two, the second is taken
// off it.
func (p Port) ActiveMTU() wire.MTU { return wire.ActiveMTU(p.MTU - p.beyondMTU()) }

// PathBytes is the largest payload of a packet that the port has room for, 0 when there is no
// path MTU for it either. See ActiveMTU.
func (p Port) PathBytes() int { return wire.PathBytes(p.MTU - p.beyondMTU()) }

// beyondMTU is how many bytes of tags frames may have for which there is no room beside the MTU.
func (p Port) beyondMTU() int {
	longest := 0
	for _, v := range p.VLANs {
		if len(v.Addrs) > 0 {
			longest = max(longest, v.ID.Tags(0).Len())
		}
	}
	return max(longest-wire.TagLen, 0)
}
