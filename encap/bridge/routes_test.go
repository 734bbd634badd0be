package bridge

import (
	"net/netip"
	"testing"
)

func TestRoutes(t *testing.T) {
	prefix := netip.MustParsePrefix
	r, err := NewRoutes([]Route{
		{prefix("10.0.0.0/8"), 1},
		{prefix("10.1.0.0/16"), 2},
		{prefix("10.1.2.3/32"), 3},
		{prefix("fd00::/8"), 1},
		{prefix("fd00:1::/32"), 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	for a, want := range map[string]Port{
		"10.9.9.9": 1, "10.1.9.9": 2, "10.1.2.3": 3, "11.0.0.1": Drop, "fd00:2::1": 1,
		"fd00:1::1": 2, "::1": Drop,
	} {
		if got := r.To(netip.MustParseAddr(a)); got != want {
			t.Errorf("%s is at %d, want %d", a, got, want)
		}
	}
	if got := r.To(netip.Addr{}); got != Drop {
		t.Errorf("no address is at %d", got)
	}
	for _, list := range [][]Route{
		{{prefix("10.0.0.0/8"), 1}, {prefix("10.0.0.0/8"), 2}},
		{{netip.Prefix{}, 1}},
		{{prefix("10.0.0.0/8"), Inside}},
		{{netip.MustParsePrefix("10.1.0.0/8"), 1}},
		make([]Route, maxRoutes+1),
	} {
		if _, err := NewRoutes(list); err == nil {
			t.Errorf("%d routes are taken", len(list))
		}
	}
}
