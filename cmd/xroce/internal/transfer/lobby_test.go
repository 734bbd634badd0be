package transfer

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"
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

// TestSlowTransfersGiveWay when others want their places, the slowest first and none that
// is fast, or that has just begun; and of a source that has enough, only its own.
func TestSlowTransfersGiveWay(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 3, PerSource: 2, Slow: 1000, now: func() time.Time { return now },
	}
	conns, guests := map[string]*caller{}, map[string]*Guest{}
	admit := func(name, addr string, ok bool) {
		t.Helper()
		conns[name] = from(addr)
		guests[name] = l.Enter(conns[name])
		if err := guests[name].Admit(); ok != (err == nil) || !ok && !errors.Is(err, ErrBusy) {
			t.Errorf("%s: %v", name, err)
		}
		if !ok {
			guests[name].Leave()
		}
	}
	gone := func(want ...string) {
		t.Helper()
		for name, c := range conns {
			if c.closed != slices.Contains(want, name) {
				t.Errorf("%s: closed is %v", name, c.closed)
			}
		}
		if n := l.count(func(*Guest) bool { return true }); n > l.Transfers {
			t.Errorf("%d transfers", n)
		}
	}
	admit("silent", "127.0.0.2", true)
	admit("slow", "127.0.0.2", true)
	admit("fast", "127.0.0.3", true)
	admit("early", "127.0.0.1", false)
	gone()
	now = now.Add(2 * slowGrace)
	guests["slow"].Progress(1000, 1<<40)
	guests["fast"].Progress(10_000, 1<<40)
	admit("same", "127.0.0.2", true)
	gone("silent")
	if g := guests["silent"]; !g.Admitted() || g.Reason(net.ErrClosed) != ErrSlow {
		t.Error("it does not know that it was admitted, and gave way")
	}
	if err := guests["fast"].Reason(net.ErrClosed); err != net.ErrClosed {
		t.Error(err)
	}
	guests["silent"].Leave()
	admit("other", "127.0.0.1", true)
	gone("silent", "slow")
	admit("late", "127.0.0.4", false)
	now, l.Slow = now.Add(time.Hour), 0
	admit("never", "127.0.0.4", false)
	gone("silent", "slow")
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
