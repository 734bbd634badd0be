package host

import (
	"errors"
	"maps"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"xroce/roce"
	"xroce/roce/wire"
)

func addrs(list ...string) (out []netip.Addr) {
	for _, a := range list {
		out = append(out, netip.MustParseAddr(a))
	}
	return out
}

// tablePort is a port with two VLANs.
func tablePort() Port {
	return Port{
		Name: "eth0", Index: 2, MAC: [6]byte{2, 0, 0, 0, 0, 1},
		Addrs: addrs("fd00::1", "fe80::ff:fe00:1", "192.0.2.1", "fe80::5", "192.0.2.9"),
		VLANs: []VLAN{
			{
				ID: 5, Name: "eth0.5", Index: 7, MAC: [6]byte{2, 0, 0, 0, 0, 1},
				Addrs: addrs("fe80::ff:fe00:1", "198.51.100.1"),
			},
			{
				ID: 6, Name: "eth0.6", Index: 9, MAC: [6]byte{2, 0, 0, 0, 0, 6},
				Addrs: addrs("192.0.2.1"),
			},
		},
	}
}

// gidLines are the entries in a form to compare.
func gidLines(entries []GIDEntry) (lines []string) {
	for _, e := range entries {
		lines = append(lines, e.Type.String()+" "+e.GID.String()+" "+e.Netdev)
	}
	return lines
}

// TestGIDTableOrder is that of Linux: default, IPv4, IPv6, VLANs; and each address
// again, RoCE v1, in the second half.
func TestGIDTableOrder(t *testing.T) {
	table := tablePort().GIDTable()
	want := []string{
		"RoCE v2 fe80::ff:fe00:1 eth0",
		"RoCE v2 ::ffff:192.0.2.1 eth0",
		"RoCE v2 ::ffff:192.0.2.9 eth0",
		"RoCE v2 fd00::1 eth0",
		"RoCE v2 fe80::5 eth0",
		"RoCE v2 ::ffff:198.51.100.1 eth0.5",
		"RoCE v2 fe80::ff:fe00:1 eth0.5",
		"RoCE v2 ::ffff:192.0.2.1 eth0.6",
	}
	n := len(want)
	for _, w := range want {
		want = append(want, "RoCE v1"+w[len("RoCE v2"):])
	}
	if diff := cmp.Diff(want, gidLines(table)); diff != "" {
		t.Error(diff)
	}
	for i, e := range table {
		index := i
		if i >= n {
			index += GIDTableLen/2 - n
		}
		if e.Index != index {
			t.Errorf("entry %d has index %d, want %d", i, e.Index, index)
		}
	}
	last := table[n-1]
	want6 := GIDEntry{
		Index: n - 1, GID: wire.GIDFromAddr(netip.MustParseAddr("192.0.2.1")), Type: GIDRoCEv2,
		Netdev: "eth0.6", Ifindex: 9, VLAN: 6, MAC: [6]byte{2, 0, 0, 0, 0, 6},
	}
	if last != want6 {
		t.Errorf("%+v, want %+v", last, want6)
	}
}

// TestGIDIndexStays where it is while addresses around it come and go: a removed one
// leaves its index empty, and the next one takes the first empty one.
func TestGIDIndexStays(t *testing.T) {
	port := Port{MAC: [6]byte{2, 0, 0, 0, 0, 1}, Addrs: addrs("192.0.2.1", "192.0.2.2", "fd00::1")}
	var table GIDTable
	if changed, left := table.Update(port); !changed || left != 0 {
		t.Fatal(changed, left)
	}
	if changed, _ := table.Update(port); changed {
		t.Error("the same port changes it")
	}
	port.Addrs = addrs("fd00::1", "192.0.2.2")
	if changed, _ := table.Update(port); !changed {
		t.Error("a removed address changes nothing")
	}
	gid := func(a string) wire.GID { return wire.GIDFromAddr(netip.MustParseAddr(a)) }
	def := wire.LinkLocalGID(port.MAC)
	if diff := cmp.Diff([]wire.GID{def, {}, gid("192.0.2.2"), gid("fd00::1")},
		table.GIDs()); diff != "" {
		t.Error(diff)
	}
	for _, index := range []int{1, 1 + GIDTableLen/2, 4, -1, GIDTableLen} {
		if _, err := table.At(index); !errors.Is(err, roce.ErrInvalid) {
			t.Errorf("index %d: %v", index, err)
		}
	}
	port.Addrs = addrs("fd00::1", "192.0.2.7", "192.0.2.2", "192.0.2.1")
	table.Update(port)
	if diff := cmp.Diff([]wire.GID{
		def, gid("192.0.2.7"), gid("192.0.2.2"), gid("fd00::1"), gid("192.0.2.1"),
	}, table.GIDs()); diff != "" {
		t.Error(diff)
	}
	// Another MAC address makes another default GID, at its index.
	port.MAC[5] = 9
	table.Update(port)
	if got := table.GIDs()[0]; got != wire.LinkLocalGID(port.MAC) {
		t.Errorf("the default GID is %s", got)
	}
}

// TestDefaultGIDOnce gives a port the MAC address from which one of its addresses is
// made: that becomes the default GID, and is in the table once.
func TestDefaultGIDOnce(t *testing.T) {
	port := Port{MAC: [6]byte{2, 0, 0, 0, 0, 1}}
	other := [6]byte{2, 0, 0, 0, 0, 2}
	port.Addrs = []netip.Addr{wire.LinkLocalGID(port.MAC).Addr(), wire.LinkLocalGID(other).Addr()}
	var table GIDTable
	for _, mac := range [][6]byte{port.MAC, other, port.MAC} {
		port.MAC = mac
		table.Update(port)
		var got []wire.GID
		for _, gid := range table.GIDs() {
			if !gid.IsZero() {
				got = append(got, gid)
			}
		}
		if len(got) != 2 || got[0] != wire.LinkLocalGID(mac) || got[1] == got[0] {
			t.Errorf("% x: %s", mac, got)
		}
	}
}

// TestGIDTableFull leaves out what has no room, and takes it when there is some.
func TestGIDTableFull(t *testing.T) {
	var port Port
	for i := range gidSlots + 2 {
		port.Addrs = append(port.Addrs, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
	}
	var table GIDTable
	if _, left := table.Update(port); left != 3 {
		t.Errorf("%d are left out, want 3", left)
	}
	port.Addrs = port.Addrs[3:]
	if _, left := table.Update(port); left != 0 {
		t.Errorf("%d are left out, want none", left)
	}
	if !table.Has(wire.GIDFromIPv4([4]byte{10, 0, 0, gidSlots + 1}), 0) {
		t.Error("the last address has no entry")
	}
}

// TestGIDTableFollowsAnything: after any change the table has exactly the addresses
// of the port, once each, and those that stayed are where they were.
func TestGIDTableFollowsAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var table GIDTable
		addr := rapid.Custom(func(t *rapid.T) netip.Addr {
			return netip.AddrFrom4([4]byte{10, 0, 0, rapid.Byte().Draw(t, "host") % 16})
		})
		for range 4 {
			before := table.Entries()
			port := Port{
				Addrs: rapid.SliceOf(addr).Draw(t, "port"),
				VLANs: []VLAN{{ID: 5, Addrs: rapid.SliceOf(addr).Draw(t, "VLAN")}},
			}
			table.Update(port)
			want := map[Addr]struct{}{{wire.LinkLocalGID(port.MAC), 0}: {}}
			for _, a := range port.Addrs {
				want[Addr{wire.GIDFromAddr(a), 0}] = struct{}{}
			}
			for _, a := range port.VLANs[0].Addrs {
				want[Addr{wire.GIDFromAddr(a), 5}] = struct{}{}
			}
			if got := table.Addrs(); !maps.Equal(want, got) {
				t.Fatalf("%v, want %v", got, want)
			}
			if n := len(table.Entries()); n != 2*len(want) {
				t.Fatalf("%d entries for %d addresses", n, len(want))
			}
			for _, e := range before {
				now, err := table.At(e.Index)
				if _, stays := want[Addr{e.GID, e.VLAN}]; stays && (err != nil || now != e) {
					t.Fatalf("%+v became %+v (%v)", e, now, err)
				}
			}
		}
	})
}
