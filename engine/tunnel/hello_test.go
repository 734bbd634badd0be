package tunnel

import (
	"testing"

	"xroce/encap"
	"xroce/engine/sim"
)

// TestHostileHello: what a peer says of itself makes nothing that cannot be.
func TestHostileHello(t *testing.T) {
	l := newLAN(t, sim.Faults{})
	a := l.site(1, 1500, TAP, Config{Format: encap.EoIB}, 9)
	for _, their := range []hello{
		{mtu: 1, largest: 1 << 31}, {mtu: 0, largest: 1}, {mtu: 65535, largest: 1<<32 - 1},
	} {
		w := a.newWay(nil, &their)
		if w.mtu != 1500 || w.largest > 9238 || w.largest < 0 {
			t.Errorf("%+v: MTU %d, longest %d", their, w.mtu, w.largest)
		}
	}
}
