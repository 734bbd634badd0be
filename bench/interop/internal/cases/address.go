package cases

import "net/netip"

// The addresses of the two ends, from the blocks for documentation (RFC 5737, RFC 3849).
// The GID of the IPv4 address has index 1 at both ends, that of the IPv6 address 2.
var (
	OurAddrs = []netip.Prefix{
		netip.MustParsePrefix("192.0.2.1/24"), netip.MustParsePrefix("2001:db8::1/64"),
	}
	TheirAddrs = []netip.Prefix{
		netip.MustParsePrefix("192.0.2.2/24"), netip.MustParsePrefix("2001:db8::2/64"),
	}
)

// address chooses the address of a family, and the index of its GID.
func address(addrs []netip.Prefix, family int) (host string, gid int) {
	if family == 6 {
		return addrs[1].Addr().String(), 2
	}
	return addrs[0].Addr().String(), 1
}

// InterfaceMTU is the MTU of the interface that gives a path MTU.
func InterfaceMTU(pathMTU int) int {
	if pathMTU == 4096 {
		return 4200
	}
	return 1500
}
