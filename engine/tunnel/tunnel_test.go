package tunnel

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
)

// frame makes an Ethernet frame of n bytes.
func frame(dst, src byte, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i * 13)
	}
	copy(b, []byte{2, 0, 0, 0, 1, dst, 2, 0, 0, 0, 1, src, 0x88, 0xcc})
	if dst == 0xff {
		copy(b, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff})
	}
	return b
}

// ipv4 makes a packet of n bytes from and to 10.0.0.x.
func ipv4(dst, src byte, n int) []byte {
	b := make([]byte, n)
	b[0], b[8], b[9] = 0x45, 64, 253
	binary.BigEndian.PutUint16(b[2:], uint16(n))
	copy(b[12:], []byte{10, 0, 0, src, 10, 0, 0, dst})
	return b
}

// formatOver is one that a TAP may have.
func formatOver(o Over) encap.Format {
	if o == OverNative {
		return encap.Raw
	}
	return encap.EoIB
}

var shapes = []struct {
	name   string
	kind   InsideKind
	config Config
	most   int // longest datagram that is tried
}{
	{"eoib over ud", TAP, Config{Format: encap.EoIB}, 9238},
	{"vnic over ud", TAP, Config{Format: encap.VNIC, Segment: 7}, 9238},
	{"eoib over rc", TAP, Config{Format: encap.EoIB, Over: OverRC}, 65549},
	{"vnic over rc", TAP, Config{Format: encap.VNIC, Over: OverRC}, 65549},
	{"ipoib over ud", TUN, Config{Format: encap.IPoIB}, 1020},
	{"ipoib over rc", TUN, Config{Format: encap.IPoIBConnected, Over: OverRC}, 65520},
	{"sealed eoib over ud", TAP, Config{Format: encap.EoIB, Key: testKey("one")}, 9238},
	{
		"sealed vnic over rc", TAP,
		Config{Format: encap.VNIC, Over: OverRC, Key: testKey("one")},
		65549,
	},
	{"eoib over uc", TAP, Config{Format: encap.EoIB, Over: OverUC}, 65549},
	{"ipoib over uc", TUN, Config{Format: encap.IPoIBConnected, Over: OverUC}, 65520},
	{"raw over native", TAP, Config{Format: encap.Raw, Over: OverNative}, 9238},
	{"rawgrh over native", TAP, Config{Format: encap.RawGRH, Over: OverNative}, 1444},
	{"raw ip over native", TUN, Config{Format: encap.Raw, Over: OverNative}, 1484},
	{
		"sealed eoib over uc", TAP,
		Config{Format: encap.EoIB, Over: OverUC, Key: testKey("one")},
		65549,
	},
}

// TestEveryLength sends datagrams of many lengths through each kind of tunnel, both ways: they
// come out as they went in.
func TestEveryLength(t *testing.T) {
	for _, tt := range shapes {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			if l.inside = tt.most; tt.kind == TAP {
				l.inside = min(l.inside-22, maxMTU)
			}
			a, b := l.site(1, 1500, tt.kind, tt.config, 2), l.site(2, 1500, tt.kind, tt.config, 1)
			a.awaitUp()
			b.awaitUp()
			for n := 20; n <= tt.most; n += 1 + n/5 {
				from, to := a, b
				if n%2 == 0 {
					from, to = b, a
				}
				datagram := frame(0xff, byte(1+n%2), n)
				if tt.kind == TUN {
					datagram = ipv4(1, 2, n)
				}
				from.send(inner.VNet{}, datagram)
				if _, got := to.receive(); !bytes.Equal(got, datagram) {
					t.Fatalf("%d bytes: others came, %d", n, len(got))
				}
			}
		})
	}
}

// TestThreeSites: an address that is known gets its frames alone, what is for all goes to all,
// and nothing goes from one peer to another.
func TestThreeSites(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.EoIB}
	sites := []*site{
		l.site(1, 1500, TAP, c, 2, 3), l.site(2, 1500, TAP, c, 1, 3), l.site(3, 1500, TAP, c, 1, 2),
	}
	for _, s := range sites {
		s.awaitUp()
	}
	// Each says something to all, and so is known to all.
	for i, s := range sites {
		hello := frame(0xff, byte(i), 60)
		s.send(inner.VNet{}, hello)
		for j, other := range sites {
			if i == j {
				continue
			}
			if _, got := other.receive(); !bytes.Equal(got, hello) {
				t.Fatalf("site %d gets %x", j, got)
			}
		}
	}
	for i, s := range sites {
		to := (i + 1) % 3
		unicast := frame(byte(to), byte(i), 100)
		s.send(inner.VNet{}, unicast)
		if _, got := sites[to].receive(); !bytes.Equal(got, unicast) {
			t.Fatalf("site %d gets %x", to, got)
		}
	}
	for i, s := range sites {
		if len(s.queue.out) != 0 {
			t.Errorf("site %d got more", i)
		}
		if n := s.Stats().Addresses; n != 3 {
			t.Errorf("site %d knows %d addresses", i, n)
		}
	}
}

// TestOtherSegment: two ends with different segments, or formats, never see each other.
func TestOtherSegment(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC} {
		for _, other := range []Config{
			{Format: encap.VNIC, Segment: 2, Over: over},
			{Format: encap.EoIB, Segment: 1, Over: over},
		} {
			t.Run(over.String()+" "+other.Format.String(), func(t *testing.T) {
				t.Parallel()
				l := newLAN(t, sim.Faults{})
				l.response = patient // it asks once
				dev, m := l.device(1, 1500)
				a := l.siteOn(dev, m, TAP, Config{Format: encap.VNIC, Segment: 1, Over: over}, 2)
				l.site(2, 1500, TAP, other, 1)
				err := a.tryOnce(a.peers[0])
				var mismatch *MismatchError
				if !errors.As(err, &mismatch) {
					t.Errorf("refused by %v", err)
				}
				if a.Stats().Peers[0].Up {
					t.Error("a peer of another network is up")
				}
			})
		}
	}
}

// tryOnce looks for a peer once.
func (s *site) tryOnce(p *peer) error {
	if !s.config.Over.connected() {
		return s.lookUp(s.t.Context(), p)
	}
	_, _, err := s.dial(s.t.Context(), p, s.lanes[0])
	return err
}

// TestStranger: who is no peer learns nothing, and is counted.
func TestStranger(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: formatOver(over), Over: over}
			a := l.site(1, 1500, TAP, c, 9)
			b := l.site(2, 1500, TAP, c, 1)
			if err := b.tryOnce(b.peers[0]); err == nil {
				t.Error("a stranger is taken")
			}
			a.await("not counted", func(s Stats) bool { return s.Dropped["stranger"] > 0 })
		})
	}
}

// TestPeerBack: a peer that ends and begins anew is found again.
func TestPeerBack(t *testing.T) {
	for _, tt := range append(shapes[:4:4], shapes[8], shapes[10]) {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			a := l.site(1, 1500, TAP, tt.config, 2)
			dev, m := l.device(2, 1500)
			for range 3 {
				// On a busy machine one may have been found more than once.
				before := a.Stats().Peers[0].Connects
				b := l.siteOn(dev, m, TAP, tt.config, 1)
				b.awaitUp()
				a.await("not found again", func(s Stats) bool {
					return s.Peers[0].Up && s.Peers[0].Connects > before
				})
				hello := frame(0xff, 1, 70)
				a.send(inner.VNet{}, hello)
				if _, got := b.receive(); !bytes.Equal(got, hello) {
					t.Errorf("%x came", got)
				}
				b.end()
			}
		})
	}
}

// TestPeerKilled: a peer that went without a word is found again when it is back.
func TestPeerKilled(t *testing.T) {
	for _, tt := range []int{0, 2, 8, 10} {
		tt := shapes[tt]
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			a, b := l.site(1, 1500, TAP, tt.config, 2), l.killable(2, tt.config, 1)
			a.awaitUp()
			b.awaitUp()
			b.kill()
			before := a.Stats().Peers[0].Connects
			b = l.killable(2, tt.config, 1)
			b.awaitUp()
			a.await("not found again", func(s Stats) bool {
				return s.Peers[0].Up && s.Peers[0].Connects > before
			})
			hello := frame(0xff, 1, 70)
			a.send(inner.VNet{}, hello)
			if _, got := b.receive(); !bytes.Equal(got, hello) {
				t.Errorf("%x came", got)
			}
		})
	}
}

// TestMTUTooLarge: an inside with a larger MTU than the format has room for is refused, with how
// much that is.
func TestMTUTooLarge(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	dev, m := l.device(1, 1500)
	for _, tt := range shapes {
		c := tt.config
		c.Peers = []Peer{{Addr: addr(2)}}
		inside := &Inside{
			Kind: tt.kind, MTU: MaxMTU(dev, tt.kind, c) + 1, Queues: []Queue{newFakeQueue()},
		}
		if inside.MTU > maxMTU {
			continue // OpenInside refuses it
		}
		if _, err := Open(dev, m, inside, c); err == nil {
			t.Errorf("%s: an MTU of %d is taken", tt.name, inside.MTU)
		}
	}
}
