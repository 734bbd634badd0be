package tunnel

import (
	"bytes"
	"testing"

	"xroce/encap"
	"xroce/encap/inner"
	"xroce/engine/sim"
)

// TestPacketCode: what a hello says of full packets is no more than there is room for, and 4096 is
// not lost to the unit.
func TestPacketCode(t *testing.T) {
	for bytes, want := range map[int]int{
		0: 0, 15: 0, 256: 256, 1024: 1024, 1420: 1408, 4095: 4080, 4096: 4096, 9000: 4096,
	} {
		if got := packetBytes(packetCode(bytes)); got != want {
			t.Errorf("%d bytes become %d, want %d", bytes, got, want)
		}
	}
}

// TestFullPackets: over RC full packets are as long as both wires have room for, and over anything
// else the path MTU is what it was. Both ends number packets by them, so a long datagram says
// whether they agree.
func TestFullPackets(t *testing.T) {
	for _, tt := range []struct {
		name      string
		over      Over
		key       *Key
		mtus      [2]int
		want, pmu int
	}{
		{"rc", OverRC, nil, [2]int{1500, 1500}, 1408, 1024},
		{"rc, key", OverRC, testKey("one"), [2]int{1500, 1500}, 1408, 1024},
		{"rc, 4200", OverRC, nil, [2]int{4200, 4200}, 4096, 4096},
		{"rc, two MTUs", OverRC, nil, [2]int{1300, 1300}, 1216, 1024},
		{"uc", OverUC, nil, [2]int{1500, 1500}, 1024, 1024},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := newLAN(t, sim.Faults{})
			c := Config{Format: encap.EoIB, Over: tt.over, Key: tt.key}
			a, b := l.site(1, tt.mtus[0], TAP, c, 2), l.site(2, tt.mtus[1], TAP, c, 1)
			a.awaitUp()
			b.awaitUp()
			for _, s := range []*site{a, b} {
				attr := s.peers[0].ways[0].Load().qp.Query()
				if attr.FullPacket() != tt.want || attr.PathMTU.Bytes() != tt.pmu {
					t.Errorf("full packets of %d bytes, path MTU %d", attr.FullPacket(),
						attr.PathMTU.Bytes())
				}
			}
			long := frame(0xff, 1, 20000)
			a.send(inner.VNet{}, long)
			if _, got := b.receive(); !bytes.Equal(got, long) {
				t.Errorf("other data of %d bytes", len(got))
			}
		})
	}
}

// TestNarrowPath: where a host in the middle takes the path MTU and not what both ends have room
// for, the connection ends, and the next one has packets of the path MTU.
func TestNarrowPath(t *testing.T) {
	l := newLAN(t, sim.Faults{MTU: 1200})
	c := Config{Format: encap.EoIB, Over: OverRC, ackTimeout: defaultAckTimeout}
	a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
	a.awaitUp()
	b.awaitUp()
	long := frame(0xff, 1, 5000)
	a.send(inner.VNet{}, long)
	a.await("the way is as before", func(Stats) bool {
		w := a.peers[0].ways[0].Load()
		return w != nil && w.qp.Query().PathBytes == 0
	})
	// Where a host is stopped for half a second the next one ends, too, with what was posted.
	for came := false; !came; {
		a.awaitUp()
		before := a.Stats().Peers[0].Connects
		a.send(inner.VNet{}, long)
		b.await("nothing comes", func(Stats) bool {
			came = len(b.queue.out) > 0
			p := a.Stats().Peers[0]
			return came || !p.Up || p.Connects > before
		})
	}
	if _, got := b.receive(); !bytes.Equal(got, long) {
		t.Errorf("other data of %d bytes", len(got))
	}
}
