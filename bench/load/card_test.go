package load

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"xroce/roce/wire"
)

func TestCard(t *testing.T) {
	address := wire.GIDFromIPv4(ipA).Addr()
	for _, pairs := range [][]pairCard{
		{{qpn: 0xabcdef, psn: 0xfffffe}},
		{{qpn: 1, psn: 2}, {qpn: 0xffffff, psn: 0}},
		make([]pairCard, 10000),
	} {
		want := card{rkey: 0xdeadbeef, addr: 1<<63 + 5, gid: address, qps: pairs}
		got, err := parseCard(want.String())
		if err != nil {
			t.Fatalf("%d pairs: %v", len(pairs), err)
		}
		diff := cmp.Diff(want, got, cmp.AllowUnexported(card{}, pairCard{}),
			cmpopts.EquateComparable(address))
		if diff != "" {
			t.Errorf("%d pairs (-want +got):\n%s", len(pairs), diff)
		}
		if strings.Contains(want.String(), "\n") {
			t.Errorf("%d pairs: a card must be one line", len(pairs))
		}
	}
	for _, line := range []string{
		"", "1 2 192.0.2.1", "1 2 nowhere 00", "x 2 192.0.2.1 00", "1 2 192.0.2.1 0g",
		"1 2 192.0.2.1 0011223344",
	} {
		if c, err := parseCard(line); err == nil {
			t.Errorf("parseCard(%q) = %v, want an error", line, c)
		}
	}
}
