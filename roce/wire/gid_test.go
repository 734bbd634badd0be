package wire

import (
	"net/netip"
	"testing"
)

func TestGID(t *testing.T) {
	tests := []struct {
		addr                       string
		want                       string
		ipv4, linkLocal, multicast bool
	}{
		{"192.0.2.1", "::ffff:192.0.2.1", true, false, false},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.1", true, false, false},
		{"239.1.2.3", "::ffff:239.1.2.3", true, false, true},
		{"223.255.255.255", "::ffff:223.255.255.255", true, false, false},
		{"240.0.0.0", "::ffff:240.0.0.0", true, false, false},
		{"fe80::1", "fe80::1", false, true, false},
		{"fe80::1%eth0", "fe80::1", false, true, false},
		{"febf::1", "febf::1", false, true, false},
		{"fec0::1", "fec0::1", false, false, false},
		{"fd77::2", "fd77::2", false, false, false},
		{"ff0e::1", "ff0e::1", false, false, true},
		{"::", "::", false, false, false},
		{"0:0:1::ffff:102:304", "::1:0:0:ffff:102:304", false, false, false},
	}
	for _, tt := range tests {
		a := netip.MustParseAddr(tt.addr)
		g := GIDFromAddr(a)
		if g.String() != tt.want || g.IsIPv4() != tt.ipv4 || g.IsLinkLocal() != tt.linkLocal ||
			g.IsMulticast() != tt.multicast {
			t.Errorf("%s: %s, IPv4 %t, link-local %t, multicast %t", tt.addr, g, g.IsIPv4(),
				g.IsLinkLocal(), g.IsMulticast())
		}
		if back := g.Addr(); back != a.Unmap().WithZone("") {
			t.Errorf("%s came back as %s", tt.addr, back)
		}
		if tt.ipv4 && GIDFromIPv4(g.IPv4()) != g {
			t.Errorf("%s: IPv4 and back is %s", tt.addr, GIDFromIPv4(g.IPv4()))
		}
	}
	if g := GIDFromAddr(netip.Addr{}); !g.IsZero() {
		t.Errorf("no address gives %s", g)
	}
}

func TestLinkLocalGID(t *testing.T) {
	mac := [6]byte{2, 0, 0, 0, 0, 1}
	g := LinkLocalGID(mac)
	if g.String() != "fe80::ff:fe00:1" {
		t.Errorf("got %s, want fe80::ff:fe00:1", g)
	}
	if back, ok := g.MAC(); !ok || back != mac {
		t.Errorf("MAC %x, %t", back, ok)
	}
	for _, s := range []string{"fe80::1", "fd77::ff:fe00:1", "192.0.2.1", "fe80::100:ff:fe00:1"} {
		if mac, ok := GIDFromAddr(netip.MustParseAddr(s)).MAC(); ok {
			t.Errorf("%s has the MAC address %x", s, mac)
		}
	}
}

func TestMulticast(t *testing.T) {
	tests := []struct {
		group string
		f     Framing
		gid   string
		mac   [6]byte
	}{
		{"239.1.2.3", FramingV2IPv4, "::ffff:239.1.2.3", [6]byte{1, 0, 0x5e, 1, 2, 3}},
		{"239.129.2.3", FramingV2IPv4, "::ffff:239.129.2.3", [6]byte{1, 0, 0x5e, 1, 2, 3}},
		{"239.1.2.3", FramingV1, "ff0e::ffff:ef01:203", [6]byte{0x33, 0x33, 239, 1, 2, 3}},
		{"ff0e::1:2", FramingV2IPv6, "ff0e::1:2", [6]byte{0x33, 0x33, 0, 1, 0, 2}},
		{"ff0e::1:2", FramingV1, "ff0e::1:2", [6]byte{0x33, 0x33, 0, 1, 0, 2}},
	}
	for _, tt := range tests {
		g := MulticastGID(netip.MustParseAddr(tt.group), tt.f)
		if g.String() != tt.gid || g.MulticastMAC(tt.f) != tt.mac || !g.IsMulticast() {
			t.Errorf("%s %s: %s at %x, want %s at %x", tt.group, tt.f, g, g.MulticastMAC(tt.f),
				tt.gid, tt.mac)
		}
	}
	// And what a host really did.
	frame := readCapture(t, "testdata/captures/ud_mcast_v4.pcap")[0]
	var p Packet
	if r := p.Decode(frame, nil); r != OK || p.DstMAC != p.Dst.MulticastMAC(p.Framing) {
		t.Errorf("%s: captured %x, computed %x", r, p.DstMAC, p.Dst.MulticastMAC(p.Framing))
	}
}
