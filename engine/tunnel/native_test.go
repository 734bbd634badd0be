package tunnel

import (
	"bytes"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine"
	"xroce/engine/sim"
)

// TestNativeStranger: native packets from a station that is no peer, or of another format, are
// counted and go nowhere, and packets that are damaged are dropped by the device.
func TestNativeStranger(t *testing.T) {
	t.Parallel()
	l := newLAN(t, sim.Faults{})
	c := Config{Format: encap.Raw, Over: OverNative}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	dev, _ := l.device(3, 1500)
	stranger, err := dev.OpenNative(engine.NativeConfig{})
	if err != nil {
		t.Fatal(err)
	}
	send := func(port *engine.NativePort, template encap.Template) {
		t.Helper()
		route, err := port.NewRoute(a.dev.Port().MAC, template)
		if err == nil {
			err = port.Send(route, encap.Ethernet, frame(0xff, 9, 100))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	send(stranger, encap.Template{Format: encap.Raw})
	a.await("not counted", func(s Stats) bool { return s.Dropped["stranger"] == 1 })
	send(b.in.native.NativePort, encap.Template{Format: encap.RawGRH})
	a.await("not counted", func(s Stats) bool { return s.Peers[0].Dropped["unknown_type"] == 1 })
	hello := frame(0xff, 2, 100)
	b.send(inner.VNet{}, hello)
	if _, got := a.receive(); !bytes.Equal(got, hello) {
		t.Errorf("%x came", got)
	}
	b.end()
	a.await("the address of a peer that has gone is still known", func(Stats) bool {
		a.leave(a.peers[0]) // again, where what it answered before came late
		a.in.mu.Lock()
		defer a.in.mu.Unlock()
		return len(a.in.macs) == 0
	})
}

// TestNativeRefused: what native packets cannot do is refused when the tunnel is opened.
func TestNativeRefused(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	dev, m := l.device(1, 1500)
	peers := []Peer{{Addr: addr(2)}}
	for name, c := range map[string]Config{
		"a key":        {Format: encap.Raw, Over: OverNative, Key: testKey("one"), Peers: peers},
		"a UD format":  {Format: encap.EoIB, Over: OverNative, Peers: peers},
		"frames in IP": {Format: encap.RawIPv6, Over: OverNative, Peers: peers},
	} {
		inside := &Inside{Kind: TAP, MTU: 1400, Queues: []Queue{newFakeQueue()}}
		if _, err := Open(dev, m, inside, c); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}
