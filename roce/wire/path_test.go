package wire

import "net/netip"

// testPath is a path of the given framing between two ordinary hosts.
func testPath(f Framing) Path {
	p := Path{
		Framing:  f,
		SrcMAC:   [6]byte{2, 0, 0, 0, 0, 1},
		DstMAC:   [6]byte{2, 0, 0, 0, 0, 2},
		Src:      GIDFromAddr(netip.MustParseAddr("192.168.0.1")),
		Dst:      GIDFromAddr(netip.MustParseAddr("192.168.0.2")),
		TClass:   2,
		HopLimit: 64,
		SrcPort:  0xc123,
	}
	if f != FramingV2IPv4 {
		p.Src, p.Dst = LinkLocalGID(p.SrcMAC), LinkLocalGID(p.DstMAC)
		p.FlowLabel = 0x12345
	}
	return p
}
