package host

import (
	"fmt"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A neighbourKey names an entry of the kernel's neighbour table.
type neighbourKey struct {
	ifindex int
	addr    netip.Addr
}

// A neighbour is an entry whose MAC address may be used.
type neighbour struct {
	mac   [6]byte
	stale bool // not confirmed lately
}

// neighbourTable is a copy of the kernel's neighbour table: the entries that may be
// used. It is safe for concurrent use.
type neighbourTable struct {
	mu      sync.Mutex
	entries map[neighbourKey]neighbour
}

// neighbourKnown are the states in which an entry has a MAC address that may be
// used (kernel include/net/neighbour.h NUD_VALID).
const neighbourKnown = netlink.NUD_PERMANENT | netlink.NUD_NOARP | netlink.NUD_REACHABLE |
	netlink.NUD_PROBE | netlink.NUD_STALE | netlink.NUD_DELAY

// groupBit is in the first byte of the MAC address of a group, such as all (IEEE 802.3,
// 3.2.3).
const groupBit = 1

// get looks a neighbour up.
func (t *neighbourTable) get(k neighbourKey) (neighbour, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n, ok := t.entries[k]
	return n, ok
}

// load reads the whole table.
func (t *neighbourTable) load(handle *netlink.Handle) error {
	entries, err := readNeighbours(handle, 0, netlink.FAMILY_V4, netlink.FAMILY_V6)
	if err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.entries = entries
	return nil
}

// readNeighbours asks the kernel for the entries that may be used, of one interface or, with 0, of
// all.
func readNeighbours(handle *netlink.Handle, ifindex int, families ...int) (
	map[neighbourKey]neighbour, error,
) {
	entries := map[neighbourKey]neighbour{}
	for _, family := range families {
		var list []netlink.Neigh
		err := undisturbed(func() (err error) {
			list, err = handle.NeighList(ifindex, family)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("host: neighbours: %w", err)
		}
		for i := range list {
			if k, n, ok := usable(&list[i]); ok {
				entries[k] = n
			}
		}
	}
	return entries, nil
}

// usable is the key of an entry, and the entry if it may be used. One of a group is not of
// a neighbour: who sent to the broadcast address of a network has one for that, too.
func usable(e *netlink.Neigh) (k neighbourKey, n neighbour, ok bool) {
	addr, ok := netip.AddrFromSlice(e.IP)
	if !ok || len(e.HardwareAddr) != len(n.mac) {
		return neighbourKey{e.LinkIndex, addr.Unmap()}, n, false
	}
	copy(n.mac[:], e.HardwareAddr)
	n.stale = e.State&netlink.NUD_STALE != 0
	ok = e.State&neighbourKnown != 0 && n.mac[0]&groupBit == 0
	return neighbourKey{e.LinkIndex, addr.Unmap()}, n, ok
}

// tell takes a notification (RTM_NEWNEIGH, RTM_DELNEIGH) and reports whether a
// neighbour has another MAC address now, or none.
func (t *neighbourTable) tell(kind uint16, data []byte) (changed bool) {
	if len(data) < unix.SizeofNdMsg {
		return false
	}
	e, err := netlink.NeighDeserialize(data)
	switch {
	case err != nil, e.Flags&netlink.NTF_PROXY != 0:
		return false
	case e.Family != netlink.FAMILY_V4 && e.Family != netlink.FAMILY_V6:
		return false // of a bridge
	}
	k, n, ok := usable(e)
	t.mu.Lock()
	defer t.mu.Unlock()
	before, had := t.entries[k]
	if kind == unix.RTM_DELNEIGH || !ok {
		delete(t.entries, k)
		return had
	}
	t.entries[k] = n
	return !had || before.mac != n.mac
}
