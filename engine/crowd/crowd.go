package crowd

import "net/netip"

// GivesWay is the index of who gives way among the holders of places, of whom the one that came
// first is first: the first of those that may, of the source that has most of these. of tells the
// source of a holder, and whether it may give way. It is -1 when none may. It takes time
// proportional to their number.
func GivesWay[H any, S comparable](holders []H, of func(H) (source S, may bool)) int {
	counts, most := map[S]int{}, 0
	for _, h := range holders {
		if source, may := of(h); may {
			counts[source]++
			most = max(most, counts[source])
		}
	}
	for i, h := range holders {
		if source, may := of(h); may && counts[source] == most {
			return i
		}
	}
	return -1
}

// networkBits is how much of an IPv6 address says whose it is: a host can have all
// addresses of a network.
const networkBits = 64

// Host is the source that is at an address: the address, of IPv6 its network of 64 bits. That of
// no address is the zero Prefix.
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
