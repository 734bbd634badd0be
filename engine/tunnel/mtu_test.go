package tunnel

import (
	"bytes"
	"net/netip"
	"sync/atomic"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/sim"
)

// A changingHost is one the MTU of whose interface changes.
type changingHost struct {
	engine.Host
	mtu atomic.Int32
}

func (h *changingHost) Port() engine.Port {
	p := h.Host.Port()
	p.MTU = int(h.mtu.Load())
	return p
}

// changingSite is a site that is opened with an MTU, which may change from then on: with it frames
// of the largest path MTU come and go.
func (l *lan) changingSite(
	n byte, mtu int, kind InsideKind, c Config, peers ...byte,
) (*site, *changingHost) {
	l.t.Helper()
	port, err := l.network.NewPort(sim.PortConfig{
		Name: "xr0", MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 4200, Addrs: []netip.Addr{addr(n)},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	h := &changingHost{Host: port}
	h.mtu.Store(int32(mtu))
	dev, m := l.deviceOn(port, h, engine.Options{})
	return l.siteOn(dev, m, kind, c, peers...), h
}

// lookAgain has all peers looked up once more, as happens now and then.
func (s *site) lookAgain() {
	s.t.Helper()
	for _, p := range s.peers {
		if err := s.lookUp(s.t.Context(), p); err != nil {
			s.t.Fatal(err)
		}
	}
}

// groupConfig has what is for all sent to a group.
var groupConfig = Config{Format: encap.EoIB, Group: netip.MustParseAddr("239.192.0.1")}

// TestMTURaised: when the MTU of the interfaces of one end is raised, or of both, frames of all
// lengths go on going both ways, also with an end that was opened with the larger one.
func TestMTURaised(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config Config
		most   int
	}{
		{"eoib over ud", Config{Format: encap.EoIB}, 9238},
		{"sealed eoib over ud", Config{Format: encap.EoIB, Key: testKey("one")}, 9238},
		{"eoib to a group", groupConfig, 9238},
		{"raw over native", Config{Format: encap.Raw, Over: OverNative}, 9238},
		{"rawgrh over native", Config{Format: encap.RawGRH, Over: OverNative}, 4000},
	} {
		for _, other := range []int{1500, 4200} {
			t.Run(tt.name+map[int]string{1500: ", both", 4200: ", one"}[other],
				func(t *testing.T) {
					t.Parallel()
					l := newLAN(t, sim.Faults{})
					l.inside = 1400
					a, host := l.changingSite(1, 1500, TAP, tt.config, 2)
					b, otherHost := l.changingSite(2, other, TAP, tt.config, 1)
					a.awaitUp()
					b.awaitUp()
					host.mtu.Store(4200)
					otherHost.mtu.Store(4200)
					a.lookAgain()
					b.lookAgain()
					for n := 60; n <= tt.most; n += 1 + n/3 {
						for _, s := range [][2]*site{{a, b}, {b, a}} {
							want := frame(0xff, byte(1+n%2), n)
							s[0].send(inner.VNet{}, want)
							if _, got := s[1].receive(); !bytes.Equal(got, want) {
								t.Fatalf("%d bytes: others came, %d", n, len(got))
							}
						}
					}
				})
		}
	}
}

// TestMTULowered: when the MTU of the interfaces is lowered, what both ends send has room in it,
// and of what has none the sender is told how much there is.
func TestMTULowered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		kind   InsideKind
		config Config
		most   int // longest packet of IP, 0 for any
	}{
		{"eoib over ud", TAP, Config{Format: encap.EoIB}, 0},
		{"eoib to a group", TAP, groupConfig, 0},
		{"ipoib over ud", TUN, Config{Format: encap.IPoIB}, 1020},
		{"raw over native", TAP, Config{Format: encap.Raw, Over: OverNative}, 0},
		{"raw ip over native", TUN, Config{Format: encap.Raw, Over: OverNative}, 1484},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			l.inside = 4000
			a, host := l.changingSite(1, 4200, tt.kind, tt.config, 2)
			b, otherHost := l.changingSite(2, 4200, tt.kind, tt.config, 1)
			a.awaitUp()
			b.awaitUp()
			host.mtu.Store(1500)
			otherHost.mtu.Store(1500)
			if err := l.network.SetFaults(sim.Faults{MTU: 1500}); err != nil {
				t.Fatal(err)
			}
			b.lookAgain()
			a.lookAgain()
			for n := 60; n <= 4000; n += 1 + n/3 {
				want := frame(0xff, 1, n)
				if tt.kind == TUN {
					want = ipv4(1, 2, n)
					want[6] = 0x40 // it may not be cut
				}
				a.send(inner.VNet{}, want)
				if tt.most == 0 || n <= tt.most {
					if _, got := b.receive(); !bytes.Equal(got, want) {
						t.Fatalf("%d bytes: others came, %d", n, len(got))
					}
				}
			}
			if tt.most == 0 {
				return
			}
			_, got := a.receive()
			if told := int(got[26])<<8 | int(got[27]); got[9] != inner.ProtocolICMP ||
				told != tt.most {
				t.Errorf("told %d: %x", told, got)
			}
		})
	}
}
