package host

import (
	"fmt"
	"net/netip"
	"slices"
	"sync"

	"xroce/roce"
	"xroce/roce/wire"
)

// A gidSlot is an address of the GID table, the same for both types. The zero
// slot is empty.
type gidSlot struct {
	gid     wire.GID
	vlan    wire.VLAN
	netdev  string
	ifindex int
	mac     [6]byte
}

// same reports whether both are the same address on the same network.
func (s gidSlot) same(o gidSlot) bool { return s.gid == o.gid && s.vlan == o.vlan }

// A GIDTable follows the addresses of a port as the kernel's cache does
// (drivers/infiniband/core/cache.c): an address keeps its index as long as it
// exists, a removed one leaves its index empty, and a new one gets the first empty
// index. Index 0 is kept for the default GID. The zero value is an empty table. It is
// safe for concurrent use.
type GIDTable struct {
	mu    sync.RWMutex
	slots [gidSlots]gidSlot
}

// orderedGIDs are the GIDs of addresses, those of IPv4 first.
func orderedGIDs(addrs []netip.Addr) []wire.GID {
	var v4, v6 []wire.GID
	for _, a := range addrs {
		if gid := wire.GIDFromAddr(a); a.Is4() || a.Is4In6() {
			v4 = append(v4, gid)
		} else {
			v6 = append(v6, gid)
		}
	}
	return append(v4, v6...)
}

// wanted lists the addresses of a port in the order of the table.
func (p Port) wanted() []gidSlot {
	own := gidSlot{netdev: p.Name, ifindex: p.Index, mac: p.MAC}
	def := own
	def.gid = wire.LinkLocalGID(p.MAC)
	list := []gidSlot{def}
	add := func(of gidSlot, gids []wire.GID) {
		for _, of.gid = range gids {
			if !of.gid.IsZero() && !slices.ContainsFunc(list, of.same) {
				list = append(list, of)
			}
		}
	}
	add(own, orderedGIDs(p.Addrs))
	for _, v := range p.VLANs {
		of := gidSlot{vlan: v.ID, netdev: v.Name, ifindex: v.Index, mac: v.MAC}
		add(of, orderedGIDs(v.Addrs))
	}
	return list
}

// Update makes the table that of the port. It reports whether anything is
// different, and for how many addresses there was no room.
func (t *GIDTable) Update(p Port) (changed bool, left int) {
	wanted := p.wanted()
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, s := range t.slots {
		// The first one wanted, the default GID, has its own place.
		if s != (gidSlot{}) && i > 0 && !slices.ContainsFunc(wanted[1:], s.same) {
			t.slots[i], changed = gidSlot{}, true
		}
	}
	for i, w := range wanted {
		at := slices.IndexFunc(t.slots[:], w.same)
		switch {
		case i == 0:
			at = 0
		case at < 0:
			at = 1 + slices.Index(t.slots[1:], gidSlot{})
			if at == 0 {
				left++
				continue
			}
		}
		if t.slots[at] != w {
			t.slots[at], changed = w, true
		}
	}
	return changed, left
}

// entry is the entry of type ty at a slot.
func (s gidSlot) entry(slot int, ty GIDType) GIDEntry {
	index := slot
	if ty == GIDRoCEv1 {
		index += gidSlots
	}
	return GIDEntry{
		Index: index, GID: s.gid, Type: ty, Netdev: s.netdev, Ifindex: s.ifindex, VLAN: s.vlan,
		MAC: s.mac,
	}
}

// Entries returns the entries that are not empty, those of type RoCE v2 first.
func (t *GIDTable) Entries() (entries []GIDEntry) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for _, ty := range []GIDType{GIDRoCEv2, GIDRoCEv1} {
		for i, s := range t.slots {
			if s != (gidSlot{}) {
				entries = append(entries, s.entry(i, ty))
			}
		}
	}
	return entries
}

// GIDs returns the GIDs of type RoCE v2 by index, the zero GID where it is empty,
// up to the last that is not.
func (t *GIDTable) GIDs() []wire.GID {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]wire.GID, 0, 8)
	last := 0
	for i, s := range t.slots {
		list = append(list, s.gid)
		if s != (gidSlot{}) {
			last = i + 1
		}
	}
	return list[:last:last]
}

// At returns the entry with this index. The error is roce.ErrInvalid when it is empty
// or not of the table.
func (t *GIDTable) At(index int) (GIDEntry, error) {
	if index < 0 || index >= GIDTableLen {
		return GIDEntry{}, fmt.Errorf("%w: GID index %d, the table has %d", roce.ErrInvalid,
			index, GIDTableLen)
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	s := t.slots[index%gidSlots]
	if s == (gidSlot{}) {
		return GIDEntry{}, fmt.Errorf("%w: GID index %d is empty", roce.ErrInvalid, index)
	}
	if index < gidSlots {
		return s.entry(index, GIDRoCEv2), nil
	}
	return s.entry(index-gidSlots, GIDRoCEv1), nil
}

// Find returns the first entry of a type that is good, false for none. The table is
// locked meanwhile: good must not use it.
func (t *GIDTable) Find(ty GIDType, good func(GIDEntry) bool) (GIDEntry, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i, s := range t.slots {
		if e := s.entry(i, ty); s != (gidSlot{}) && good(e) {
			return e, true
		}
	}
	return GIDEntry{}, false
}

// Get returns the entry of type RoCE v2 with an address on a VLAN, false for none.
func (t *GIDTable) Get(gid wire.GID, vlan wire.VLAN) (GIDEntry, bool) {
	if gid.IsZero() {
		return GIDEntry{}, false // that of the slots that are empty
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for i := range t.slots {
		if s := &t.slots[i]; s.gid == gid && s.vlan == vlan {
			return s.entry(i, GIDRoCEv2), true
		}
	}
	return GIDEntry{}, false
}

// Has reports whether an address is in the table, on this VLAN.
func (t *GIDTable) Has(gid wire.GID, vlan wire.VLAN) bool {
	_, ok := t.Get(gid, vlan)
	return ok
}

// An Addr is an address of a port with the VLAN that it is on.
type Addr struct {
	GID  wire.GID
	VLAN wire.VLAN
}

// Addrs lists the addresses of the table. The map is the caller's.
func (t *GIDTable) Addrs() map[Addr]struct{} {
	t.mu.RLock()
	defer t.mu.RUnlock()
	m := map[Addr]struct{}{}
	for _, s := range t.slots {
		if s != (gidSlot{}) {
			m[Addr{s.gid, s.vlan}] = struct{}{}
		}
	}
	return m
}
