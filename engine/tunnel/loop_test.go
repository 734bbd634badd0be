package tunnel

import (
	"bytes"
	"fmt"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/sim"
)

var direct = engine.Options{Direct: true}

// polledPair makes two ends that are each one thread.
func (l *lan) polledPair(kind InsideKind, c Config) (a, b *site) {
	l.t.Helper()
	dev, m := l.deviceIn(1, 1500, direct)
	a = l.siteOn(dev, m, kind, c, 2)
	dev, m = l.deviceIn(2, 1500, direct)
	b = l.siteOn(dev, m, kind, c, 1)
	a.awaitUp()
	b.awaitUp()
	return a, b
}

// TestPolled: datagrams of many lengths go both ways by one thread at each end.
func TestPolled(t *testing.T) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			if l.inside = tt.most; tt.kind == TAP {
				l.inside = min(l.inside-22, maxMTU)
			}
			a, b := l.polledPair(tt.kind, tt.config)
			for n := 20; n <= tt.most; n += 1 + n/2 {
				for _, s := range [][2]*site{{a, b}, {b, a}} {
					datagram := frame(0xff, byte(1+n%2), n)
					if tt.kind == TUN {
						datagram = ipv4(1, 2, n)
					}
					s[0].send(inner.VNet{}, datagram)
					if _, got := s[1].receive(); !bytes.Equal(got, datagram) {
						t.Fatalf("%d bytes: others came, %d", n, len(got))
					}
				}
			}
		})
	}
}

// TestPolledBothWays: two ends that send more than there is room for, both at once, do not wait
// for each other for ever: who waits for room receives meanwhile.
func TestPolledBothWays(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	a, b := l.polledPair(TAP, Config{Format: encap.EoIB, Over: OverRC})
	const count = 4 * connWork
	sites := []*site{a, b}
	done := make(chan error, len(sites))
	for i, s := range sites {
		go func() {
			for n := range count {
				s.send(inner.VNet{}, frame(0xff, byte(n), 200+n%1000))
			}
		}()
		go func() {
			var err error
			defer func() { done <- err }() // also when nothing comes
			for n := range count {
				_, got := sites[1-i].receive()
				if !bytes.Equal(got, frame(0xff, byte(n), 200+n%1000)) {
					err = fmt.Errorf("frame %d: %x", n, got[:14])
					return
				}
			}
		}()
	}
	for range sites {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestPolledRefused: an inside that is polled needs a device in direct mode, and is one queue.
func TestPolledRefused(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB, Peers: []Peer{{Addr: addr(9)}}}
	for n, o := range []engine.Options{{}, direct} {
		dev, m := l.deviceIn(byte(1+n), 1500, o)
		queues := []Queue{&polledFake{newFakeQueue()}, newFakeQueue()}
		inside := &Inside{Kind: TAP, MTU: 1500, Queues: queues[:1+n]}
		if _, err := Open(dev, m, inside, c); err == nil {
			t.Errorf("options %+v, %d queues: taken", o, 1+n)
		}
	}
}
