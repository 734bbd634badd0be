package peer

import "net/netip"

// networkBits is how much of an IPv6 address says whose it is: a host can have all
// addresses of a network.
const networkBits = 64

// Host is who is at an address, for a server that gives each only so much: the address, of
// IPv6 its network of 64 bits. That of no address is the zero Prefix.
func Host(addr netip.Addr) netip.Prefix {
	addr = addr.Unmap().WithZone("")
	bits := addr.BitLen()
	if addr.Is6() {
		bits = networkBits
	}
	host, err := addr.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return host
}
