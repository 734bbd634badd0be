package tunnel

import (
	"bytes"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
)

// arp makes a packet of ARP from host src of 10.0.0.0/24 about dst.
func arp(op, src, dst byte) []byte {
	b := make([]byte, 42)
	copy(b, frame(0xff, src, 14))
	copy(b[12:], []byte{8, 6, 0, 1, 8, 0, 6, 4, 0, op})
	copy(b[22:], b[6:12])
	copy(b[28:], []byte{10, 0, 0, src})
	copy(b[38:], []byte{10, 0, 0, dst})
	return b
}

// TestSuppress: a question for a host at a peer that said who it is, is answered here, and no
// peer hears of it; one for a host that is not known goes to all.
func TestSuppress(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Suppress: true}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	unknown := arp(1, 1, 2)
	a.send(inner.VNet{}, unknown)
	if _, got := b.receive(); !bytes.Equal(got, unknown) {
		t.Fatalf("%x came", got)
	}
	claim := arp(1, 2, 2) // host 2 says that it is there
	b.send(inner.VNet{}, claim)
	if _, got := a.receive(); !bytes.Equal(got, claim) {
		t.Fatalf("%x came", got)
	}
	a.send(inner.VNet{}, unknown)
	want := arp(2, 2, 1)
	copy(want, unknown[6:12])
	copy(want[32:], unknown[6:12])
	if _, got := a.receive(); !bytes.Equal(got, want) {
		t.Fatalf("answered %x, want %x", got, want)
	}
	if st := a.Stats(); st.Answered != 1 || st.Neighbours != 2 || len(b.queue.out) != 0 {
		t.Errorf("%+v", st)
	}
	// The host moves here: who asks inside is not answered for it any more.
	a.send(inner.VNet{}, claim)
	if _, got := b.receive(); !bytes.Equal(got, claim) {
		t.Fatalf("%x came", got)
	}
	a.send(inner.VNet{}, unknown)
	if _, got := b.receive(); !bytes.Equal(got, unknown) {
		t.Fatalf("%x came", got)
	}
	b.end() // what a peer said goes with it
	a.leave(a.peers[0])
	if st := a.Stats(); st.Answered != 1 || st.Neighbours > 2 {
		t.Errorf("%+v", st)
	}
}

// TestSuppressGone: nothing is answered for hosts at a peer that is not there.
func TestSuppressGone(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Suppress: true}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	claim := arp(1, 2, 2)
	b.send(inner.VNet{}, claim)
	if _, got := a.receive(); !bytes.Equal(got, claim) {
		t.Fatalf("%x came", got)
	}
	b.end()
	a.await("not gone", func(s Stats) bool {
		a.leave(a.peers[0]) // again, where what it answered before came late
		return !s.Peers[0].Up
	})
	a.send(inner.VNet{}, arp(1, 1, 2))
	a.await("not counted", func(s Stats) bool { return s.Peers[0].Dropped["no_peer"] == 1 })
	if st := a.Stats(); st.Answered != 0 || st.Neighbours != 1 {
		t.Errorf("%+v", st)
	}
}
