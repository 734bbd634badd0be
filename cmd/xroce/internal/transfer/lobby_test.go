package transfer

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
)

// A caller is a connection from somewhere.
type caller struct {
	net.Conn
	from   netip.Addr
	closed bool
}

func (c *caller) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.from, 1))
}

func (c *caller) Close() error {
	c.closed = true
	return nil
}

func from(addr string) *caller { return &caller{from: netip.MustParseAddr(addr)} }

// TestLobbyIsNeverFull: strangers who take all places lose them to others, and nobody
// else does.
func TestLobbyIsNeverFull(t *testing.T) {
	l := &Lobby{Places: 4, Transfers: 2, PerSource: 2}
	good := from("192.0.2.1")
	guest := l.Enter(good)
	var bad []*caller
	for range 100 {
		bad = append(bad, from("198.51.100.1"))
		l.Enter(bad[len(bad)-1])
	}
	if open := slices.DeleteFunc(bad, func(c *caller) bool { return c.closed }); len(open) != 3 {
		t.Errorf("%d places are the stranger's", len(open))
	}
	if good.closed || guest.Admit() != nil || !guest.Admitted() {
		t.Error("the good one lost its place")
	}
	for range 100 { // one host, many addresses
		l.Enter(from("2001:db8::" + string("123456789"[len(l.waiting)%9])))
	}
	other := from("192.0.2.2")
	if guest := l.Enter(other); other.closed || guest.Admit() != nil {
		t.Error("another good one lost its place")
	}
}

// TestLobbyBounds are those of transfers, of all and of one source.
func TestLobbyBounds(t *testing.T) {
	l := &Lobby{Places: 4, Transfers: 3, PerSource: 2}
	enter := func(addr string) *Guest { return l.Enter(from(addr)) }
	admitted := []*Guest{enter("192.0.2.1"), enter("192.0.2.1")}
	for _, g := range admitted {
		if err := g.Admit(); err != nil {
			t.Fatal(err)
		}
	}
	third := enter("192.0.2.1")
	if err := third.Admit(); !errors.Is(err, ErrBusy) || third.Admitted() {
		t.Errorf("three of one source: %v", err)
	}
	third.Leave()
	if err := enter("192.0.2.2").Admit(); err != nil {
		t.Error(err)
	}
	fifth := enter("192.0.2.3")
	if err := fifth.Admit(); !errors.Is(err, ErrBusy) {
		t.Errorf("four in all: %v", err)
	}
	admitted[0].Leave()
	if err := fifth.Admit(); err != nil {
		t.Errorf("after one left: %v", err)
	}
}

// TestSources: IPv6 networks are one, IPv4 in IPv6 is IPv4.
func TestSources(t *testing.T) {
	for addr, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "::ffff:192.0.2.1": "192.0.2.1/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "fe80::1%eth0": "fe80::/64",
	} {
		if got := sourceOf(from(addr).RemoteAddr()); got.String() != want {
			t.Errorf("%s: %s, not %s", addr, got, want)
		}
	}
}
