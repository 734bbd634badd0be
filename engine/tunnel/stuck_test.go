package tunnel

import (
	"bytes"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/sim"
)

// TestStuckPeers: peers that take nothing any more, and do not go either, hold up nobody else: what
// is for them is dropped once they have their share of the memory, and another one gets all that
// is for it, also when it comes in pieces.
func TestStuckPeers(t *testing.T) {
	for _, direct := range []bool{false, true} {
		for _, key := range []*Key{nil, testKey("one")} {
			name := map[bool]string{false: "threads", true: "one thread"}[direct]
			t.Run(name+" key "+onOff(map[bool]uint8{true: helloSealed}[key != nil]),
				func(t *testing.T) {
					t.Parallel()
					stuckPeers(t, direct, key)
				})
		}
	}
}

func stuckPeers(t *testing.T, direct bool, key *Key) {
	t.Helper()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Over: OverRC, Key: key}
	const peers = 6 // of which the first is not stuck
	var numbers []byte
	for n := range byte(peers) {
		numbers = append(numbers, 2+n)
	}
	dev, m := l.deviceIn(1, 1500, engine.Options{Direct: direct})
	a := l.siteOn(dev, m, TAP, c, numbers...)
	var sites []*site
	for _, n := range numbers {
		sites = append(sites, l.site(n, 1500, TAP, c, 1))
	}
	a.awaitUp()
	for i, s := range sites {
		s.awaitUp()
		hello := frame(0xff, numbers[i], 100)
		s.send(inner.VNet{}, hello)
		if _, got := a.receive(); !bytes.Equal(got, hello) {
			t.Fatalf("%x came", got)
		}
	}
	for _, s := range sites[1:] {
		s.in.mu.Lock() // it posts no receive any more
		defer s.in.mu.Unlock()
	}
	for range 300 {
		for _, n := range numbers[1:] {
			a.send(inner.VNet{}, frame(n, 1, 100))
		}
	}
	for i := range 50 {
		want := frame(2, 1, 200+i)
		a.send(inner.VNet{}, want)
		if _, got := sites[0].receive(); !bytes.Equal(got, want) {
			t.Fatalf("%x came", got[:20])
		}
	}
	for i, p := range a.Stats().Peers {
		if dropped := p.Dropped["queue_full"]; dropped > 0 != (i > 0) {
			t.Errorf("%d datagrams for peer %d were dropped", dropped, i)
		}
	}
}
