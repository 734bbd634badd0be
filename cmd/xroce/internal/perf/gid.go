package perf

import (
	"fmt"

	"xroce/engine"
	"xroce/roce"
	"xroce/roce/wire"
)

// chooseGID returns the index of the GID to use.
func chooseGID(dev *engine.Device, c *Config) (int, error) {
	table, index := dev.GIDs(), c.GIDIndex
	switch {
	case index == AutoGID:
		if index = bestGID(table, c.IPv6); index < 0 {
			return 0, fmt.Errorf("%w: %s has no GID that fits: give it an address, or choose "+
				"with -x", roce.ErrInvalid, dev.Name())
		}
	case index < 0 || index >= len(table) || table[index].IsZero():
		return 0, fmt.Errorf("%w: -x %d: %s has no such GID", roce.ErrInvalid, index, dev.Name())
	}
	if own := table[index]; !c.Group.IsZero() && c.Group.IsIPv4() != own.IsIPv4() {
		return 0, fmt.Errorf("%w: GID %s cannot send to group %s: choose the same IP version "+
			"(-x, --ipv6, -M)", roce.ErrInvalid, own.Addr(), c.Group.Addr())
	}
	return index, nil
}

// bestGID returns the index of the GID that fits best, -1 when none does. Routable ones come
// before those of the link; IPv4 before IPv6, unless that is asked for: then there is no
// other. Where there is a zero GID there is none.
func bestGID(table []wire.GID, ipv6 bool) int {
	best, bestRank := -1, 0
	for i, g := range table {
		rank := 0
		switch {
		case g.IsZero(), ipv6 && g.IsIPv4():
		case g.IsLinkLocal():
			rank = 1
		case g.IsIPv4() == ipv6:
			rank = 2
		default:
			rank = 3
		}
		if rank > bestRank {
			best, bestRank = i, rank
		}
	}
	return best
}
