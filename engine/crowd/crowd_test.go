package crowd

import (
	"net/netip"
	"slices"
	"testing"
	"unicode"

	"pgregory.net/rapid"
)

// TestGivesWay: the first that may, of the source that has most of those that may; nobody when
// none may. A small letter may not.
func TestGivesWay(t *testing.T) {
	for holders, want := range map[string]int{
		"": -1, "a": -1, "abc": -1,
		"A": 0, "AB": 0, "ABB": 1, "ABBAA": 0, "AABB": 0, "BAABB": 0,
		"aaaB": 3, "aAaBB": 3, "bABbbBA": 1, "bBaaaAa": 1,
	} {
		got := GivesWay([]rune(holders), func(r rune) (rune, bool) {
			return unicode.ToUpper(r), unicode.IsUpper(r)
		})
		if got != want {
			t.Errorf("%q: %d, want %d", holders, got, want)
		}
	}
}

// TestFlood: whatever order they come in, who has few places keeps them while one has many.
func TestFlood(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const places = 8
		var holders []int
		for _, s := range rapid.SliceOfN(rapid.IntRange(0, 5), 0, 100).Draw(t, "sources") {
			source := max(0, s-4) // 1 is rare
			counts := map[int]int{}
			if holders = append(holders, source); len(holders) <= places {
				continue
			}
			for _, h := range holders {
				counts[h]++
			}
			i := GivesWay(holders, func(h int) (int, bool) { return h, true })
			if counts[holders[i]] < counts[1-holders[i]] || slices.Index(holders, holders[i]) != i {
				t.Fatalf("%d of %v", i, holders)
			}
			holders = slices.Delete(holders, i, i+1)
		}
	})
}

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
