package transfer

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"xroce/engine/crowd"
)

// A caller is a connection from somewhere.
type caller struct {
	from   netip.Prefix
	closed bool
	why    error
}

func (c *caller) hangUp(why error) { c.closed, c.why = true, why }

func from(addr string) *caller {
	return &caller{from: crowd.Host(netip.MustParseAddr(addr))}
}

// enter gives a caller a place.
func (l *Lobby) enter(c *caller) *Guest { return l.Enter(c.from, c.hangUp) }

// TestLobbyIsNeverFull: strangers who take all places lose them to others, and nobody
// else does.
func TestLobbyIsNeverFull(t *testing.T) {
	l := &Lobby{Places: 4, Transfers: 2, PerSource: 2}
	good := from("192.0.2.1")
	guest := l.enter(good)
	var bad []*caller
	for range 100 {
		bad = append(bad, from("198.51.100.1"))
		l.enter(bad[len(bad)-1])
	}
	if open := slices.DeleteFunc(bad, func(c *caller) bool { return c.closed }); len(open) != 3 {
		t.Errorf("%d places are the stranger's", len(open))
	}
	if good.closed || guest.Admit() != nil || !guest.Admitted() {
		t.Error("the good one lost its place")
	}
	for range 100 { // one host, many addresses
		l.enter(from("2001:db8::" + string("123456789"[len(l.waiting)%9])))
	}
	other := from("192.0.2.2")
	if guest := l.enter(other); other.closed || guest.Admit() != nil {
		t.Error("another good one lost its place")
	}
}

// TestInventedSources: requests in the names of as many hosts as there are drive out nobody who is
// there, and who is there does not keep others from becoming so.
func TestInventedSources(t *testing.T) {
	l := &Lobby{Places: 8, Transfers: 2, PerSource: 2}
	invented := func(n int) (all []*caller) {
		for i := range n {
			all = append(all, from(netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}).String()))
			l.enter(all[i])
		}
		return all
	}
	invented(100)
	good := from("192.0.2.1")
	guest := l.enter(good)
	invented(2)
	guest.Connected()
	invented(1000)
	if good.closed || guest.Admit() != nil {
		t.Error("who was there lost its place")
	}
	var silent []*caller
	for i := range 100 { // hosts that are there and say nothing
		silent = append(silent, from(netip.AddrFrom4([4]byte{10, 1, 0, byte(i)}).String()))
		l.enter(silent[i]).Connected()
	}
	other := from("192.0.2.2")
	guest = l.enter(other)
	if guest.Connected(); other.closed || guest.Admit() != nil {
		t.Error("silent ones keep others out")
	}
	if n := len(l.waiting); n > l.Places {
		t.Errorf("%d places", n)
	}
}

// TestLobbyBounds are those of transfers, of all and of one source.
func TestLobbyBounds(t *testing.T) {
	l := &Lobby{Places: 4, Transfers: 3, PerSource: 2}
	enter := func(addr string) *Guest { return l.enter(from(addr)) }
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
		guests[name] = l.enter(conns[name])
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
	if g := guests["silent"]; !g.Admitted() || conns["silent"].why != ErrSlow ||
		g.Admit() != ErrSlow {
		t.Error("it does not know that it was admitted, and gave way")
	}
	guests["silent"].Leave()
	admit("other", "127.0.0.1", true)
	gone("silent", "slow")
	admit("late", "127.0.0.4", false)
	now, l.Slow = now.Add(time.Hour), 0
	admit("never", "127.0.0.4", false)
	gone("silent", "slow")
}

// TestNextOfManyFiles: what was sent before counts, so who sends one small file after the other
// is slow as well.
func TestNextOfManyFiles(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1000, now: func() time.Time { return now },
	}
	many := from("192.0.2.1")
	guest := l.enter(many)
	for range 10 {
		if err := guest.Admit(); err != nil {
			t.Fatal(err)
		}
		guest.Progress(5000, 5000)
		if err := guest.Whole(); err != nil {
			t.Fatal(err)
		}
		guest.Ended()
		now = now.Add(4 * time.Second)
	}
	if err := guest.Admit(); err != nil {
		t.Fatal(err)
	}
	if err := l.enter(from("192.0.2.2")).Admit(); !errors.Is(err, ErrBusy) || many.closed {
		t.Errorf("1250 bytes a second: %v", err)
	}
	now = now.Add(time.Minute)
	if err := l.enter(from("192.0.2.2")).Admit(); err != nil || !many.closed {
		t.Errorf("nothing for a minute: %v", err)
	}
}

// TestBetweenFiles: who has sent all of a file, and is slow to ask for the next, gives way.
func TestBetweenFiles(t *testing.T) {
	now := time.Unix(0, 0)
	l := &Lobby{
		Places: 4, Transfers: 1, PerSource: 1, Slow: 1000, now: func() time.Time { return now },
	}
	idle := from("192.0.2.1")
	guest := l.enter(idle)
	for range 10 {
		if err := guest.Admit(); err != nil {
			t.Fatal(err)
		}
		guest.Progress(1, 1)
		if err := guest.Whole(); err != nil {
			t.Fatal(err)
		}
		now = now.Add(9 * time.Second)
		if err := l.enter(from("192.0.2.3")).Admit(); !errors.Is(err, ErrBusy) {
			t.Fatalf("while its file is being written: %v", err)
		}
		guest.Ended()
	}
	if err := l.enter(from("192.0.2.2")).Admit(); err != nil || !idle.closed {
		t.Errorf("ten bytes in a minute and a half: %v", err)
	}
}
