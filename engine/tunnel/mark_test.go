package tunnel

import (
	"bytes"
	"context"
	"encoding/binary"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/cm"
	"xroce/engine/sim"
	"xroce/roce/wire"
)

// A marks is what the frames around a datagram had, of a test whose datagrams have a word in them.
type marks struct {
	mu      sync.Mutex
	classes []byte
	tags    []wire.Tags
}

// theWord is what is looked for in frames.
var theWord = []byte("marked as it is to be")

// observe notes the marks of all frames with the word.
func (l *lan) observe() *marks {
	m := &marks{}
	l.network.Observe(func(e *sim.Event) {
		tags, etherType, at, ok := wire.ParseTags(e.Frame)
		if e.Kind != sim.Sent || !ok || !bytes.Contains(e.Frame, theWord) {
			return
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.tags = append(m.tags, tags); etherType == inner.TypeIPv4 {
			m.classes = append(m.classes, e.Frame[at+1])
		}
	})
	return m
}

// TestMark: the packets around datagrams have the DSCP of the configuration, and over UD still the
// ECN field of each; what is inside stays as it was.
func TestMark(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC, OverUC} {
		t.Run(over.String(), func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			l.inside = 1020
			seen := l.observe()
			c := Config{Format: encap.IPoIB, Over: over, Mark: Mark{DSCP: 46, Fixed: true}}
			if over.connected() {
				c.Format = encap.IPoIBConnected
			}
			a, b := l.site(1, 1500, TUN, c, 2), l.site(2, 1500, TUN, c, 1)
			a.awaitUp()
			b.awaitUp()
			var want []byte
			for _, class := range []byte{0x28 | inner.ECT0, 0} {
				packet := ipv4(1, 2, 100)
				packet[1] = class
				copy(packet[40:], theWord)
				binary.BigEndian.PutUint16(packet[10:], inner.Checksum(packet[:20]))
				a.send(inner.VNet{}, packet)
				if _, got := b.receive(); !bytes.Equal(got, packet) {
					t.Errorf("%x came, %x was sent", got[:20], packet[:20])
				}
				if over.connected() {
					class = 0
				}
				want = append(want, 46<<2|class&3)
			}
			seen.mu.Lock()
			defer seen.mu.Unlock()
			if over.connected() { // what is sent again counts once
				seen.classes, want = slices.Compact(seen.classes), want[:1]
			}
			if !bytes.Equal(seen.classes, want) {
				t.Errorf("traffic classes %x, want %x", seen.classes, want)
			}
		})
	}
}

type simPort = *sim.Port

// A vlanPort is a host of the simulated network all of whose addresses are in a VLAN.
type vlanPort struct {
	simPort
	vlan    wire.VLAN
	changes chan struct{}
}

func (p *vlanPort) Port() engine.Port {
	port := p.simPort.Port()
	port.VLANs = []engine.VLAN{{ID: p.vlan, Name: "v", MAC: port.MAC, Addrs: port.Addrs}}
	port.Addrs = nil
	return port
}

func (p *vlanPort) Changes() <-chan struct{} { return p.changes }

func (p *vlanPort) ResolveOn(
	ctx context.Context, _ wire.VLAN, src, dst netip.Addr,
) (engine.Hop, error) {
	mac, err := p.Resolve(ctx, src, dst)
	return engine.Hop{MAC: mac}, err
}

func (p *vlanPort) Lookup(vlan wire.VLAN, src, dst netip.Addr) (engine.Hop, error) {
	return p.ResolveOn(context.Background(), vlan, src, dst)
}

func (p *vlanPort) Known(vlan wire.VLAN, src, dst netip.Addr) (engine.Hop, error) {
	return p.Lookup(vlan, src, dst)
}

func (p *vlanPort) Source(netip.Addr) (wire.VLAN, netip.Addr, error) {
	return p.vlan, p.simPort.Port().Addrs[0], nil
}

// deviceInVLAN is device of a host in a VLAN.
func (l *lan) deviceInVLAN(n byte, vlan wire.VLAN) (*engine.Device, *cm.Manager) {
	l.t.Helper()
	port, err := l.network.NewPort(sim.PortConfig{
		Name: "xr0", MAC: [6]byte{2, 0, 0, 0, 0, n}, MTU: 1500, Addrs: []netip.Addr{addr(n)},
	})
	if err != nil {
		l.t.Fatal(err)
	}
	return l.deviceOn(port, &vlanPort{port, vlan, make(chan struct{})}, engine.Options{})
}

// TestPriority: all frames around datagrams, of a VLAN or of one in another, have the priority of
// the configuration in their tags, over whatever they travel.
func TestPriority(t *testing.T) {
	qinq := wire.Tags{{TPID: wire.TPIDService, TCI: 100}, {TPID: wire.TPIDCustomer, TCI: 5}}.VLAN()
	for _, over := range []Over{OverUD, OverRC, OverUC, OverNative} {
		for _, vlan := range []wire.VLAN{7, qinq} {
			t.Run(over.String()+" "+vlan.String(), func(t *testing.T) {
				t.Parallel()
				l := newLAN(t, sim.Faults{})
				l.inside = 1400
				seen := l.observe()
				c := Config{Format: formatOver(over), Over: over, Mark: Mark{Priority: 5}}
				dev, m := l.deviceInVLAN(1, vlan)
				a := l.siteOn(dev, m, TAP, c, 2)
				dev, m = l.deviceInVLAN(2, vlan)
				b := l.siteOn(dev, m, TAP, c, 1)
				a.awaitUp()
				b.awaitUp()
				hello := frame(0xff, 1, 200)
				copy(hello[40:], theWord)
				a.send(inner.VNet{}, hello)
				if _, got := b.receive(); !bytes.Equal(got, hello) {
					t.Errorf("%x came", got)
				}
				seen.mu.Lock()
				defer seen.mu.Unlock()
				seen.tags = slices.Compact(seen.tags) // some may have been sent again
				if len(seen.tags) != 1 || seen.tags[0] != vlan.Tags(5) {
					t.Errorf("tags %v, want %v", seen.tags, vlan.Tags(5))
				}
			})
		}
	}
}

// TestPriorityNeedsAVLAN: where there are no tags a priority is refused, not ignored.
func TestPriorityNeedsAVLAN(t *testing.T) {
	for _, over := range []Over{OverUD, OverRC} {
		l := newLAN(t, sim.Faults{})
		a := l.site(1, 1500, TAP, Config{
			Format: encap.EoIB, Over: over, Mark: Mark{Priority: 5},
		}, 2)
		l.site(2, 1500, TAP, Config{Format: encap.EoIB, Over: over}, 1)
		if err := a.tryOnce(a.peers[0]); err == nil || !strings.Contains(err.Error(), "VLAN") {
			t.Errorf("over %s: %v", over, err)
		}
	}
}

// TestMarkRefused: what is no mark, or not where there is one.
func TestMarkRefused(t *testing.T) {
	for _, tt := range []struct {
		Mark
		Over
	}{
		{Mark{DSCP: 64}, OverUD},
		{Mark{Priority: 8}, OverRC},
		{Mark{Fixed: true}, OverNative},
	} {
		if tt.check(tt.Over) == nil {
			t.Errorf("%+v over %s is taken", tt.Mark, tt.Over)
		}
	}
}
