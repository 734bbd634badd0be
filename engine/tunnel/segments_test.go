package tunnel

import (
	"testing"

	"xroce/encap/inner"
	"xroce/engine/sim"
)

// TestLostSegments: a frame of which a segment is lost does not come, and is counted as what is
// not complete.
func TestLostSegments(t *testing.T) {
	for _, over := range []Over{OverUD, OverNative} {
		t.Run(over.String(), func(t *testing.T) {
			l := newLAN(t, sim.Faults{})
			l.inside = 9000
			c := Config{Format: formatOver(over), Over: over}
			a, b := l.site(1, 1500, TAP, c, 2), l.site(2, 1500, TAP, c, 1)
			a.awaitUp()
			b.awaitUp()
			if err := l.network.SetFaults(sim.Faults{Drop: 0.2}); err != nil {
				t.Fatal(err)
			}
			for b.Stats().Dropped["incomplete"] == 0 {
				a.send(inner.VNet{}, frame(2, 1, 9000))
				select {
				case <-b.queue.out: // few are whole
				default:
				}
				if a.Stats().Peers[0].TxDatagrams > 10_000 {
					t.Fatalf("%+v", b.Stats())
				}
			}
		})
	}
}
