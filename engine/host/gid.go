package host

import (
	"fmt"

	"xroce/roce/wire"
)

// GIDType is the type of a GID, with the values of enum ibv_gid_type.
type GIDType uint8

// The types of GID that a RoCE device has.
const (
	GIDRoCEv1 GIDType = 1
	GIDRoCEv2 GIDType = 2
)

// String returns the type as ibv_devinfo prints it.
func (t GIDType) String() string {
	switch t {
	case GIDRoCEv1:
		return "RoCE v1"
	case GIDRoCEv2:
		return "RoCE v2"
	}
	return fmt.Sprintf("GIDType(%d)", uint8(t))
}

// A GIDEntry is an entry of the GID table (struct ibv_gid_entry).
type GIDEntry struct {
	Index   int // the SGIDIndex of address vectors
	GID     wire.GID
	Type    GIDType
	Netdev  string    // the interface that has the address: the device's, or a VLAN on it
	Ifindex int       // its index
	VLAN    wire.VLAN // 0 for none
	MAC     [6]byte   // of that interface
}

// Size and places of the GID table.
const (
	// gidSlots is how many addresses a table has room for.
	gidSlots = 128
	// GIDTableLen is the length of the GID table. The entries of type RoCE v2
	// fill its first half in the order that Soft-RoCE has, and index
	// GIDTableLen/2 + i is the same address as index i, of type RoCE v1.
	GIDTableLen = 2 * gidSlots
)

// GIDTable lists the entries of the GID table that a device opened on this port
// would have, as Linux orders them: the default GID, made from the MAC address,
// then the IPv4 addresses, the IPv6 addresses, and those of the VLAN interfaces.
func (p Port) GIDTable() []GIDEntry {
	var t GIDTable
	t.Update(p)
	return t.Entries()
}

// GIDs lists those of type RoCE v2, each at its index.
func (p Port) GIDs() []wire.GID {
	var t GIDTable
	t.Update(p)
	return t.GIDs()
}
