package result

import (
	"fmt"
	"slices"

	"xroce/bench/ratio"
)

// TunnelPrefix begins the names of the cases of tunnels.
const TunnelPrefix = "tunnel-"

// The cases of tunnels, and variants of theirs that goals are about.
const (
	tunnelTCP = TunnelPrefix + "tcp"
	tunnelUDP = TunnelPrefix + "udp"
	tunnelRTT = TunnelPrefix + "rtt"

	vxlanXDP  = "VXLAN, XDP"
	tunRC     = "ours, tun over rc"
	tapUD     = "ours, tap over ud"
	tapNative = "ours, tap over native"
)

// UserTunnels are the tunnels of others that encrypt in user space, by the names of their
// variants.
var UserTunnels = []string{"OpenVPN", "tinc", "n2n", "vpncloud"}

// ofBestPeer is the ratio of the variant to the one of the tunnels of others that is best.
func ofBestPeer(c *Case, g *Goal) (best ratio.Spread) {
	most := 0.0
	for _, peer := range UserTunnels {
		if m := c.spread(peer, value).Median; m > most {
			most, best = m, c.compare(g.Variant, peer).Ratio
		}
	}
	return best
}

// tunnelGoals are those of tunnels.
func tunnelGoals() []Goal {
	goals := []Goal{
		{
			"TCP in a tun over rc, of VXLAN with XDP", 1, false, tunnelTCP, tunRC, vxlanXDP,
			in(against),
		},
		{
			"datagrams in a tap over ud, of VXLAN with XDP", 1, false, tunnelUDP, tapUD, vxlanXDP,
			in(against),
		},
	}
	for _, one := range []struct{ name, what, over string }{
		{tunnelTCP, "TCP", "rc"}, {tunnelTCP, "TCP", "ud"}, {tunnelUDP, "datagrams", "ud"},
	} {
		goals = append(goals, Goal{
			fmt.Sprintf("%s in a tap over %s with a key, of the best in user space", one.what,
				one.over),
			1, false, one.name, "ours, tap over " + one.over + ", key", "", in(ofBestPeer),
		})
	}
	for _, variant := range []string{tunRC, tapUD, tapNative} {
		goals = append(goals, Goal{
			"half round trip in a " + variant[len("ours, "):] + ", of VXLAN with XDP", 1.3, true,
			tunnelRTT, variant, vxlanXDP, in(against),
		})
	}
	return append(goals, Goal{
		"TCP in a tun over rc at 1 % loss, of lossless", 0.9, false, tunnelTCP,
		tunRC + ", 1 % loss", tunRC + ", 0 % loss", in(against),
	})
}

// tunnelTable has what each tunnel does, in units that people use, and beside the reference.
func (d *Document) tunnelTable() table {
	t := table{
		title: "Tunnels, and their ratios to " + vxlanXDP,
		header: []string{
			"tunnel", "TCP, Mb/s", "ratio", "datagrams/s", "ratio", "half round trip, µs", "ratio",
		},
		notes: []string{"Medians of the rounds, ratios within a round."},
	}
	columns := []struct {
		c      *Case
		unit   float64
		format string
	}{
		{d.Case(tunnelTCP), 1e6, "%.0f"},
		{d.Case(tunnelUDP), 1, "%.0f"},
		{d.Case(tunnelRTT), 1e3, "%.1f"},
	}
	var variants []string
	for _, col := range columns {
		if col.c == nil {
			continue
		}
		for _, v := range col.c.Variants {
			if !slices.Contains(variants, v) {
				variants = append(variants, v)
			}
		}
	}
	for _, v := range variants {
		row := []string{v}
		for _, col := range columns {
			if col.c == nil {
				row = append(row, "–", "–")
				continue
			}
			beside := "–"
			if v != vxlanXDP {
				beside = perhaps(col.c.compare(v, vxlanXDP).Ratio, "%.2f")
			}
			row = append(row, perhaps(col.c.spread(v, func(r *Row) (float64, bool) {
				return r.Value / col.unit, r.Value > 0
			}), col.format), beside)
		}
		t.rows = append(t.rows, row)
	}
	return t
}
