package peer

import (
	"net/netip"
	"testing"

	"xroce/roce/wire"
)

func TestChooseGID(t *testing.T) {
	gid := func(a string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(a)) }
	v4, v6 := gid("198.51.100.9"), gid("2001:db8::9")
	// The second address was removed.
	table := []wire.GID{gid("fe80::1"), {}, gid("192.0.2.1"), gid("2001:db8::1")}
	for _, tt := range []struct {
		name   string
		table  []wire.GID
		local  string
		remote *wire.GID
		want   int // -1 for an error
	}{
		{"the first routable", table, "", nil, 2},
		{"that of the TCP connection", table, "2001:db8::1", nil, 3},
		{"that of a foreign TCP connection", table, "203.0.113.1", nil, 2},
		{"to IPv4", table, "2001:db8::1", &v4, 2},
		{"to IPv6", table, "", &v6, 3},
		{"link-local when there is no other", table[:2], "", &v6, 0},
		{"an empty index is none", table[1:2], "", &v6, -1},
		{"nothing reaches it", table[:2], "", &v4, -1},
	} {
		var local netip.Addr
		if tt.local != "" {
			local = netip.MustParseAddr(tt.local)
		}
		got, err := chooseGID(tt.table, local, tt.remote)
		if (err != nil) != (tt.want < 0) || (err == nil && got != tt.want) {
			t.Errorf("%s: index %d (%v), want %d", tt.name, got, err, tt.want)
		}
	}
}
