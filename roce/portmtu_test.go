package roce

import (
	"testing"

	"xroce/roce/wire"
)

// TestMostHeaders: no packet that carries data has more in front of it and behind it than frames
// are given room for.
func TestMostHeaders(t *testing.T) {
	for i := range 256 {
		op := wire.Opcode(i)
		spec := op.Spec()
		if !spec.Known || spec.Has(wire.HasAPSN) || spec.Has(wire.HasRDETH) {
			continue // a rider needs a packet that is not full, and nobody has RD
		}
		most := mostHeaders
		switch {
		case spec.Has(wire.HasXRCETH):
			most += wire.XRCETHLen
		case spec.Has(wire.HasDETH):
			most = mostDatagramHeaders
		}
		// The shortest full packet has 256 bytes, the longest without data none.
		data := 256
		if spec.Has(wire.HasAtomicETH) || spec.Has(wire.HasAtomicAckETH) || spec.Has(wire.HasFETH) {
			data = 0
		}
		if n := wire.BTHLen + int(spec.HeaderLen) + data + wire.ICRCLen; n > most+256 {
			t.Errorf("%s: %d bytes of headers, there is room for %d", op, n-data, most)
		}
	}
}
