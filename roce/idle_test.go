package roce_test

import (
	"runtime"
	"testing"

	"xroce/roce"
)

// TestIdleMemory measures what an idle, connected QP costs beside its CQs: a QP and
// what its attributes ask for, whatever the depth of its queues.
func TestIdleMemory(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector has memory of its own")
	}
	const many, limit = 10_000, 1024
	for _, tt := range []struct {
		typ   roce.QPType
		maxRd uint8
	}{{roce.TypeRC, 16}, {roce.TypeRC, 1}, {roce.TypeUC, 1}, {roce.TypeUD, 1}} {
		o := options{Type: tt.typ, MaxRd: tt.maxRd, Depth: 1024, SGE: 8, Inline: 256}.filled()
		shared := newEndpoint(t, 1, o)
		qps := make([]*roce.QP, many)
		var before, after runtime.MemStats
		config := shared.config(o)
		runtime.GC()
		runtime.ReadMemStats(&before)
		for i := range qps {
			var err error
			qps[i], err = roce.NewQP(uint32(2+i), config)
			must(t, err)
			e := &endpoint{tb: t, qp: qps[i]}
			e.connect(qpnB, o, roce.StateRTS)
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		each := (after.HeapAlloc - before.HeapAlloc) / many
		t.Logf("%s, MAX_DEST_RD_ATOMIC %d: %d bytes a QP", tt.typ, tt.maxRd, each)
		if each > limit {
			t.Errorf("%s: %d bytes, want at most %d", tt.typ, each, limit)
		}
		runtime.KeepAlive(qps)
	}
}
