package nic

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// iface has a number, which is all that is needed of it here.
const iface = "lo"

// TestParseKind: a rule that looks at more, or at less, is another one.
func TestParseKind(t *testing.T) {
	for _, k := range Kinds() {
		b := request(cmdRule, 0)
		Rule{Kind: k, Queue: 3, Location: 5}.put(b)
		if got := parseRule(b); got != (Rule{5, k, 3, 0}) {
			t.Errorf("%v, not %v", got, k)
		}
		for i := offMasks; i < offMasks+headersLen; i++ {
			other := slices.Clone(b)
			other[i] ^= 1
			if got := parseKind(other); got != Other {
				t.Errorf("%v with mask bit %d is %v", k, i, got)
			}
		}
		binary.NativeEndian.PutUint64(b[offCookie:], cookieDrop)
		if r := parseRule(b); r.Queue != Drop {
			t.Errorf("%v", r)
		}
		binary.NativeEndian.PutUint64(b[offCookie:], 1<<32|3)
		if r := parseRule(b); r.Queue != Elsewhere {
			t.Errorf("%v", r)
		}
		binary.NativeEndian.PutUint32(b[offSpec:], binary.NativeEndian.Uint32(b[offSpec:])|flowRSS)
		binary.NativeEndian.PutUint64(b[offCookie:], 0)
		binary.NativeEndian.PutUint32(b[offCount:], 7)
		if r := parseRule(b); r.Context != 7 || r.Kind != k {
			t.Errorf("%v", r)
		}
	}
}

// TestTable reads what a driver says of RSS.
func TestTable(t *testing.T) {
	c := newFakeCard()
	c.rings, c.hashes = 6, map[uint32]Hash{flowUDP4: HashSrcAddr | HashSrcPort}
	c.table = make([]uint32, 2048)
	for i := range c.table {
		c.table[i] = uint32(4 + i%2)
	}
	tab := table{iface, c.call}
	card := Card{Rings: tab.rings(), Indirection: tab.indirection()}
	if !slices.Equal(card.Spread(), []int{4, 5}) || card.Queues() != 6 ||
		tab.hash(flowUDP4) != HashSrcAddr|HashSrcPort || tab.hash(flowUDP6) != 0 {
		t.Errorf("%+v", card)
	}
	if all := (&Card{Rings: 3}).Spread(); !slices.Equal(all, []int{0, 1, 2}) {
		t.Error(all)
	}
}

// TestReadLoopback asks a driver that has nearly nothing, by the real ioctl.
func TestReadLoopback(t *testing.T) {
	c, err := Read(iface)
	if err != nil || !errors.Is(c.RulesErr, unix.EOPNOTSUPP) || len(c.Features) == 0 ||
		c.Queues() != 1 {
		t.Errorf("%+v, %v", c, err)
	}
	if _, err := Read("xr-none"); err == nil {
		t.Error("an interface that is not there is read")
	}
	if _, err := openSocket(strings.Repeat("x", 16)); err == nil {
		t.Error("a name that is too long is cut")
	}
}

// TestRules reads the rules of a card, by location.
func TestRules(t *testing.T) {
	c := newFakeCard()
	for _, r := range []Rule{{9, V6, 2, 0}, {3, V4, 1, 0}} {
		c.add(r)
	}
	list, err := table{iface, c.call}.rules()
	card := Card{Rules: list, Rings: 2}
	queues, rule := card.Landing(V6)
	all, none := card.Landing(V1)
	if err != nil || !slices.Equal(list, []Rule{{3, V4, 1, 0}, {9, V6, 2, 0}}) ||
		!slices.Equal(queues, []int{2}) || !slices.Equal(all, []int{0, 1}) || none != nil {
		t.Errorf("%v, %v: %v, %v, %v", list, err, queues, all, none)
	}
	if got := rule.String() + ": " + rule.Delete("eth0") + ", " + rule.Make("eth0"); got !=
		"flow rule 9 sends RoCE over IPv6 to queue 2: ethtool -N eth0 delete 9, "+
			"ethtool -N eth0 flow-type udp6 dst-port 4791 action 2" {
		t.Error(got)
	}
}
