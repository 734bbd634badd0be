package peer

import (
	"net/netip"
	"testing"
)

// TestHost: an IPv4 address is a host, however it is written, and so is a network of IPv6.
func TestHost(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1":         "192.0.2.1/32",
		"::ffff:192.0.2.1":  "192.0.2.1/32",
		"2001:db8::1":       "2001:db8::/64",
		"2001:db8:0:0:9::1": "2001:db8::/64",
		"2001:db8:0:1::1":   "2001:db8:0:1::/64",
		"fe80::1%xr0":       "fe80::/64",
	} {
		if got := Host(netip.MustParseAddr(addr)).String(); got != want {
			t.Errorf("%s is %s, want %s", addr, got, want)
		}
	}
	if got := Host(netip.Addr{}); got != (netip.Prefix{}) {
		t.Errorf("no address is %s", got)
	}
}
