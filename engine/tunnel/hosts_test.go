package tunnel

import (
	"bytes"
	"testing"
	"time"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/sim"
)

// TestLearnedOfTUN: a hub of a TUN finds those that name it, and where the hosts behind them are by
// what they send. Nobody takes an address that a named peer has a route for, or another one had
// first, and what is for nobody goes nowhere.
func TestLearnedOfTUN(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		for _, direct := range []bool{false, true} {
			t.Run(over.String()+map[bool]string{true: " one thread"}[direct], func(t *testing.T) {
				t.Parallel()
				learnedOfTUN(t, over, direct)
			})
		}
	}
}

func learnedOfTUN(t *testing.T, over Over, direct bool) {
	t.Helper()
	l := newLAN(t, sim.Faults{})
	l.inside, l.response = 1020, patient // the packets below are sent once
	c := Config{Format: encap.IPoIB, Over: over}
	switch {
	case over == OverNative:
		c.Format = encap.Raw
	case over.connected():
		c.Format = encap.IPoIBConnected
	}
	of := learns(c)
	of.Peers = []Peer{{Addr: addr(9), Routes: prefixes("10.0.0.200/32")}}
	dev, m := l.deviceIn(1, 1500, engine.Options{Direct: direct})
	hub := l.siteOn(dev, m, TUN, of)
	spokes := []*site{l.site(2, 1500, TUN, c, 1), l.site(3, 1500, TUN, c, 1)}
	for _, s := range spokes {
		s.awaitUp()
	}
	hub.await("two are not learned", func(s Stats) bool {
		return len(s.Peers) == 3 && s.Peers[1].Up && s.Peers[2].Up
	})
	first := hub.roster.Load().byAddr[addr(2)].port // ports are given as peers ask
	dropped := func(port int, why string) func(Stats) bool {
		return func(s Stats) bool { return s.Peers[port-1].Dropped[why] == 1 }
	}
	hub.send(inner.VNet{}, ipv4(12, 1, 100))
	hub.await("sent though nobody has the address", func(s Stats) bool {
		return s.Dropped["no_route"] == 1
	})
	pass := func(from, to *site, packet []byte) {
		t.Helper()
		from.send(inner.VNet{}, packet)
		if _, got := to.receive(); !bytes.Equal(got, packet) {
			t.Errorf("%x came, %x was sent", got[:20], packet[:20])
		}
	}
	pass(spokes[0], hub, ipv4(1, 12, 100))
	pass(spokes[1], hub, ipv4(1, 13, 101))
	pass(hub, spokes[0], ipv4(12, 1, 102))
	pass(hub, spokes[1], ipv4(13, 1, 103))
	spokes[1].send(inner.VNet{}, ipv4(1, 12, 104)) // that of the first
	hub.await("taken from the first", dropped(int(5-first), "bad_source"))
	spokes[0].send(inner.VNet{}, ipv4(1, 200, 105)) // that of a named peer
	hub.await("taken from a named peer", dropped(int(first), "bad_source"))
	pass(hub, spokes[0], ipv4(12, 1, 106))
	// One of them is inside.
	if s := hub.Stats(); s.Addresses != 3 || s.Learned-s.Forgotten != 2 {
		t.Errorf("%+v", s)
	}
	if len(spokes[1].queue.out) != 0 || len(hub.queue.out) != 0 {
		t.Error("something came that was dropped")
	}
}

// TestForgottenOfTUN: what was behind a peer that is forgotten is free for another one, and so is
// what has sent nothing for the age.
func TestForgottenOfTUN(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	l.inside = 1020
	c := Config{
		Format: encap.IPoIB, Rekey: 100 * time.Millisecond,
		// Who is not heard of for so long on a busy machine is forgotten, too.
		LearnIdle: idle(),
	}
	hub := l.site(1, 1500, TUN, learns(c))
	spokes := []*site{l.site(2, 1500, TUN, c, 1), l.site(3, 1500, TUN, c, 1)}
	hub.awaitPeers(2)
	spokes[0].awaitUp()
	spokes[0].send(inner.VNet{}, ipv4(1, 12, 100))
	hub.receive()
	spokes[0].end()
	hub.await("not forgotten", func(s Stats) bool {
		return s.Addresses == 0 && s.Forgotten > 0
	})
	spokes[1].awaitUp()
	moved := ipv4(1, 12, 101)
	spokes[1].send(inner.VNet{}, moved)
	if _, got := hub.receive(); !bytes.Equal(got, moved) {
		t.Errorf("%x came", got)
	}
}
